// The loader's list of images. dl_iterate_phdr takes the loader's lock, so it is called on the collector's thread only, and never between
// a fork's two halves: the lock is not reset in the child.
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/stat.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <climits>
#include <condition_variable>
#include <cstdint>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "loader_mutex.h"
#include "strobe/platform/linux/linux_platform.h"

namespace strobe {
namespace {

constexpr std::size_t kMaxBuildIdBytes = 64;

std::string ProgramPath() {
  char path[PATH_MAX];
  const ssize_t length = readlink("/proc/self/exe", path, sizeof(path));
  std::string result(path, length > 0 ? static_cast<std::size_t>(length) : 0);
  constexpr std::string_view kDeleted = " (deleted)";
  if (result.size() > kDeleted.size() && std::string_view(result).ends_with(kDeleted)) result.resize(result.size() - kDeleted.size());
  return result;
}

// The build id of a loaded image, from its notes in memory: lower-case hexadecimal, empty where there is none.
std::string BuildIdOf(const dl_phdr_info& info) {
  for (int i = 0; i < info.dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info.dlpi_phdr[i];
    if (header.p_type != PT_NOTE) continue;
    const char* notes = reinterpret_cast<const char*>(info.dlpi_addr + header.p_vaddr);  // NOLINT(performance-no-int-to-ptr)
    const std::size_t align = header.p_align == 8 ? 8 : 4;
    std::size_t offset = 0;
    while (offset + sizeof(ElfW(Nhdr)) <= header.p_memsz) {
      ElfW(Nhdr) note;
      std::memcpy(&note, notes + offset, sizeof(note));
      const std::size_t name = offset + sizeof(note);
      const std::size_t description = name + (note.n_namesz + align - 1) / align * align;
      const std::size_t end = description + (note.n_descsz + align - 1) / align * align;
      if (end > header.p_memsz || end <= offset) break;
      if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && std::memcmp(notes + name, "GNU", 4) == 0 &&
          note.n_descsz <= kMaxBuildIdBytes) {
        constexpr std::string_view kDigits = "0123456789abcdef";
        std::string hexadecimal;
        for (std::size_t byte = 0; byte < note.n_descsz; ++byte) {
          const auto value = static_cast<unsigned char>(notes[description + byte]);
          hexadecimal += kDigits[value >> 4];
          hexadecimal += kDigits[value & 15];
        }
        return hexadecimal;
      }
      offset = end;
    }
  }
  return {};
}

// Tells a file from what it is when it has been written anew; 0 where there is none.
std::uint64_t FileVersionOf(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) return 0;
  std::uint64_t version = 1;
  for (const auto part :
       {static_cast<std::uint64_t>(status.st_dev), static_cast<std::uint64_t>(status.st_ino), static_cast<std::uint64_t>(status.st_size),
        static_cast<std::uint64_t>(status.st_mtim.tv_sec), static_cast<std::uint64_t>(status.st_mtim.tv_nsec)}) {
    version = (version ^ part) * 0x9E3779B97F4A7C15;
    version ^= version >> 32;
  }
  return version;
}

// Where the program's own file says that .eh_frame lies, in its virtual addresses: plain -static leaves the index out that a segment would
// name. 0 where there is none.
Address ReadEhFrameSection() {
  constexpr std::size_t kMaxSections = 4096;
  const int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  const auto read_at = [file](std::uint64_t offset, void* data, std::size_t bytes) {
    return pread(file, data, bytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(bytes);
  };
  Address address = 0;
  ElfW(Ehdr) header;
  ElfW(Shdr) names;
  constexpr std::string_view kName(".eh_frame", sizeof(".eh_frame"));  // with its end
  if (read_at(0, &header, sizeof(header)) && header.e_shentsize == sizeof(names) && header.e_shnum <= kMaxSections &&
      read_at(header.e_shoff + header.e_shstrndx * sizeof(names), &names, sizeof(names))) {
    for (std::size_t i = 0; i < header.e_shnum && address == 0; ++i) {
      ElfW(Shdr) section;
      char name[kName.size()];
      if (!read_at(header.e_shoff + i * sizeof(section), &section, sizeof(section))) break;
      if ((section.sh_flags & SHF_ALLOC) == 0 || !read_at(names.sh_offset + section.sh_name, name, sizeof(name))) continue;
      if (std::string_view(name, sizeof(name)) == kName) address = section.sh_addr;
    }
  }
  close(file);
  return address;
}

// Where makecontext lets a coroutine's first function return to: no symbol says it, so one is made that never runs.
Address CoroutineEnd() {
  std::array<Address, 64> stack{};
  ucontext_t context;
  if (getcontext(&context) != 0) return 0;
  context.uc_stack = {.ss_sp = stack.data(), .ss_flags = 0, .ss_size = sizeof(stack)};
  context.uc_link = nullptr;
  makecontext(
      &context, [] {}, 0);
#if defined(__x86_64__)
  const auto sp = static_cast<Address>(context.uc_mcontext.gregs[REG_RSP]) - reinterpret_cast<Address>(stack.data());
  return sp < sizeof(stack) ? stack[sp / sizeof(Address)] : 0;
#else
  return context.uc_mcontext.regs[30];
#endif
}

struct Listing {
  std::vector<Module> modules;
  std::string program_path;
  std::uint64_t version = 0;
  bool is_first = true;
};

int AddImage(dl_phdr_info* info, std::size_t /*size*/, void* data) {
  auto& listing = *static_cast<Listing*>(data);
  std::string path = info->dlpi_name != nullptr ? info->dlpi_name : "";
  const bool is_program = std::exchange(listing.is_first, false);
  if (is_program) path = listing.program_path;
  if (path.empty() || std::string_view(path).starts_with("linux-vdso") || std::string_view(path).starts_with("linux-gate")) path = "[vdso]";
  const std::string build_id = BuildIdOf(*info);
  Address unwind_address = 0;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    if (info->dlpi_phdr[i].p_type == PT_GNU_EH_FRAME) unwind_address = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
  }
  Address eh_frame_address = 0;
  if (unwind_address == 0 && is_program) {
    static const Address section = ReadEhFrameSection();
    if (section != 0) eh_frame_address = info->dlpi_addr + section;
  }
  static const Address coroutine_end = CoroutineEnd();
  const auto page = static_cast<Address>(sysconf(_SC_PAGESIZE));
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    // As in /proc/self/maps: whole pages.
    const Address begin = info->dlpi_addr + header.p_vaddr;
    const Address start = begin & ~(page - 1);
    const Address limit = (begin + header.p_memsz + page - 1) & ~(page - 1);
    listing.modules.push_back({.start = start,
                               .limit = limit,
                               .file_offset = header.p_offset - (begin - start),
                               .load_bias = info->dlpi_addr,
                               .path = path,
                               .build_id = build_id,
                               .unwind_address = unwind_address,
                               .eh_frame_address = eh_frame_address,
                               .stack_end = coroutine_end - start < limit - start ? coroutine_end : 0});
  }
  return 0;
}

int ReadVersion(dl_phdr_info* info, std::size_t /*size*/, void* data) {
  // Both only ever grow, so their sum changes with either.
  *static_cast<std::uint64_t*>(data) = info->dlpi_adds + info->dlpi_subs;
  return 1;
}

// Whether the loader's own lock can be had. It is no lock that a fork takes care of: in the child of one that came while another thread
// was loading or unloading an image, nobody will ever release it.
enum class LoaderState : std::uint8_t { kAnswers, kInDoubt, kStuck };
constinit std::atomic<LoaderState> loader_state{LoaderState::kAnswers};
// How long a child waits for the loader's first answer.
constexpr std::chrono::milliseconds kLoaderWait(2000);

// What Modules() said last. Where the loader is stuck no image can come or go, so this stays true. Under the loader mutex.
std::vector<Module>& LastModules() {
  static auto* const modules = new std::vector<Module>;
  return *modules;
}

// Asks on a thread that can be left behind.
void AskLoader() {
  struct Question {
    std::mutex mutex;
    std::condition_variable changed;
    bool is_answered = false;
  };
  const auto question = std::make_shared<Question>();
  LinuxPlatform::OwnThread thread = LinuxPlatform::RunOnOwnThread("strobe-loader", [question] {
    std::uint64_t version = 0;
    dl_iterate_phdr(&ReadVersion, &version);
    const std::lock_guard lock(question->mutex);
    loader_state.store(LoaderState::kAnswers);
    question->is_answered = true;
    question->changed.notify_all();
  });
  if (!thread.IsRunning()) return;
  std::unique_lock lock(question->mutex);
  if (question->changed.wait_for(lock, kLoaderWait, [&] { return question->is_answered; })) {
    lock.unlock();
    thread.Join();
  } else {
    loader_state.store(LoaderState::kStuck);
    thread.Detach();
  }
}

bool LoaderAnswers() {
  if (loader_state.load() == LoaderState::kInDoubt) AskLoader();
  return loader_state.load() == LoaderState::kAnswers;
}

}  // namespace

void internal::DoubtLoader() { loader_state.store(LoaderState::kInDoubt); }

std::uint64_t LinuxPlatform::ModuleVersion() {
  const std::lock_guard lock(internal::LoaderMutex());
  std::uint64_t version = 0;
  if (!LoaderAnswers()) return version;
  dl_iterate_phdr(&ReadVersion, &version);
  return version;
}

std::vector<Module> LinuxPlatform::Modules() {
  Listing listing;
  listing.program_path = ProgramPath();
  const std::lock_guard lock(internal::LoaderMutex());
  if (!LoaderAnswers()) return LastModules();
  dl_iterate_phdr(&AddImage, &listing);
  // Without the loader's lock, for a file may lie far away.
  for (Module& module : listing.modules) {
    if (module.build_id.empty()) module.file_version = FileVersionOf(module.path);
  }
  LastModules() = listing.modules;
  return std::move(listing.modules);
}

}  // namespace strobe
