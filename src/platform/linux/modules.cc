// The loader's list of images. dl_iterate_phdr takes the loader's lock, so it is called on the
// control plane only, and never between a fork's two halves: the lock is not reset in the child.
// Under that lock nothing is allocated and no memory of an image is read: an allocator may itself
// call the loader under a lock of its own, and the headers of an image may be wrong.
#include <elf.h>
#include <link.h>
#include <sys/auxv.h>
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
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/elf_notes.h"
#include "files/image_files.h"
#include "loader_namespaces.h"
#include "signals/loader_mutex.h"
#include "strobe/base/page.h"
#include "strobe/platform/linux/linux_platform.h"

// musl's headers declare these functions, but its library has neither of them.
#pragma weak getcontext
#pragma weak makecontext

namespace strobe {
namespace {

// Bytes that are read of one segment of notes.
constexpr std::size_t kMaxNoteBytes = 64 * 1024;
constexpr const char* kThisProgram = "/proc/self/exe";
// How often the list is read if images are loaded or unloaded meanwhile.
constexpr int kMaxListings = 4;

// Reads memory of this process that may not be mapped. Returns the bytes before the first that
// could not be read.
std::vector<std::uint8_t> ReadUpTo(Address address, std::size_t bytes) {
  std::vector<std::uint8_t> data(bytes);
  data.resize(LinuxPlatform::ReadMemory(address, data));
  return data;
}

std::string BuildIdOf(Address load_bias, const std::vector<ElfW(Phdr)>& headers) {
  for (const ElfW(Phdr) & header : headers) {
    if (header.p_type != PT_NOTE) continue;
    const std::vector<std::uint8_t> notes =
        ReadUpTo(load_bias + header.p_vaddr, std::min<std::size_t>(header.p_memsz, kMaxNoteBytes));
    std::string build_id = internal::BuildIdIn(notes, header.p_align);
    if (!build_id.empty()) return build_id;
  }
  return {};
}

// The address that makecontext makes a coroutine's first function return to. It has no symbol, so
// this function makes a coroutine that never runs, and reads the address. The result is 0 if the
// program has no makecontext.
Address CoroutineEnd() {
  if (&getcontext == nullptr || &makecontext == nullptr) return 0;
  std::array<Address, 64> stack{};
  ucontext_t context;
  if (getcontext(&context) != 0) return 0;
  context.uc_stack = {.ss_sp = stack.data(), .ss_flags = 0, .ss_size = sizeof(stack)};
  context.uc_link = nullptr;
  makecontext(
      &context, [] {}, 0);
#if defined(__x86_64__)
  const auto sp = static_cast<Address>(context.uc_mcontext.gregs[REG_RSP]) -
                  reinterpret_cast<Address>(stack.data());
  return sp < sizeof(stack) ? stack[sp / sizeof(Address)] : 0;
#else
  return context.uc_mcontext.regs[30];
#endif
}

// The loader's description of an image, as plain data.
struct ListedImage {
  Address load_bias = 0;
  Address headers = 0;  // of its program headers
  std::size_t header_count = 0;
  std::size_t name = 0;  // offset in Listing::names
  std::size_t name_bytes = 0;
};

// A list of images. Its memory is allocated before the call of the loader.
struct Listing {
  std::vector<ListedImage> images;
  std::vector<char> names;
  // All images and names, also those that found no room.
  std::size_t image_count = 0;
  std::size_t name_bytes = 0;
  std::uint64_t version = 0;

  [[nodiscard]] bool is_whole() const {
    return image_count <= images.size() && name_bytes <= names.size();
  }
};

// Both counts only grow, so their sum changes with either.
std::uint64_t VersionOf(const dl_phdr_info& info) { return info.dlpi_adds + info.dlpi_subs; }

// Runs under the loader's lock.
int ListImage(dl_phdr_info* info, std::size_t /*size*/, void* data) {
  auto& listing = *static_cast<Listing*>(data);
  listing.version = VersionOf(*info);
  ListedImage image{
      .load_bias = info->dlpi_addr,
      .headers = reinterpret_cast<Address>(info->dlpi_phdr),
      .header_count = info->dlpi_phnum,
      .name = listing.name_bytes,
      .name_bytes = info->dlpi_name == nullptr ? 0 : strnlen(info->dlpi_name, PATH_MAX)};
  ++listing.image_count;
  listing.name_bytes += image.name_bytes;
  if (!listing.is_whole()) return 0;
  std::copy_n(info->dlpi_name, image.name_bytes, listing.names.data() + image.name);
  listing.images[listing.image_count - 1] = image;
  return 0;
}

int ReadVersion(dl_phdr_info* info, std::size_t /*size*/, void* data) {
  *static_cast<std::uint64_t*>(data) = VersionOf(*info);
  return 1;
}

// A fork waits for this call.
void AskLoader(int (*answer)(dl_phdr_info*, std::size_t, void*), void* data) {
  const std::lock_guard lock(internal::LoaderMutex());
  dl_iterate_phdr(answer, data);
}

std::uint64_t LoaderVersion() {
  std::uint64_t version = 0;
  AskLoader(&ReadVersion, &version);
  return version;
}

Listing ListImages() {
  Listing listing;
  std::size_t images = 64;
  std::size_t name_bytes = 4096;
  for (int i = 0; i < kMaxListings; ++i) {
    listing = {};
    listing.images.resize(images);
    listing.names.resize(name_bytes);
    AskLoader(&ListImage, &listing);
    if (listing.is_whole()) break;
    // More images may be loaded before the next attempt.
    images = 2 * listing.image_count;
    name_bytes = 2 * listing.name_bytes;
  }
  listing.images.resize(std::min(listing.images.size(), listing.image_count));
  listing.names.resize(std::min(listing.names.size(), listing.name_bytes));
  return listing;
}

// The program headers of an image, which may have been unloaded since it was listed.
std::vector<ElfW(Phdr)> HeadersOf(const ListedImage& image) {
  const std::vector<std::uint8_t> bytes =
      ReadUpTo(image.headers, image.header_count * sizeof(ElfW(Phdr)));
  std::vector<ElfW(Phdr)> headers(bytes.size() / sizeof(ElfW(Phdr)));
  if (!headers.empty())
    std::memcpy(headers.data(), bytes.data(), headers.size() * sizeof(headers[0]));
  return headers;
}

// Adds the images of other namespaces than that of this library.
void AddOtherNamespaces(Listing& listing) {
  if (listing.images.empty()) return;
  const ListedImage program = listing.images.front();
  for (const ElfW(Phdr) & header : HeadersOf(program)) {
    if (header.p_type != PT_DYNAMIC) continue;
    for (const internal::LoadedImage& image :
         internal::ImagesOfNamespaces(program.load_bias + header.p_vaddr)) {
      // Each namespace has the loader.
      if (std::ranges::find(listing.images, image.load_bias, &ListedImage::load_bias) !=
          listing.images.end())
        continue;
      const std::string name = image.name.empty() ? internal::ProgramPath() : image.name;
      listing.images.push_back({.load_bias = image.load_bias,
                                .headers = image.headers,
                                .header_count = image.header_count,
                                .name = listing.names.size(),
                                .name_bytes = name.size()});
      listing.names.insert(listing.names.end(), name.begin(), name.end());
    }
  }
}

// The program comes first. The vdso's headers lie in the page that the kernel announced, or it is
// the image without a name.
ModuleKind KindOf(const Listing& listing, const ListedImage& image) {
  if (&image == &listing.images.front()) return ModuleKind::kProgram;
  const Address vdso = getauxval(AT_SYSINFO_EHDR);
  const bool is_vdso =
      image.name_bytes == 0 || (vdso != 0 && image.headers - vdso < internal::kPageBytes);
  return is_vdso ? ModuleKind::kVdso : ModuleKind::kSharedLibrary;
}

// `ld.so PROGRAM` makes the loader the process's executable, of which the kernel knows no loader.
bool MayBeOfLoader() { return getauxval(AT_BASE) == 0; }

std::string ProgramPathAt(Address address, internal::ImagePaths& paths) {
  std::string path = MayBeOfLoader() ? paths.At(address) : std::string();
  return path.empty() ? internal::ProgramPath() : path;
}

std::string PathOf(const Listing& listing, const ListedImage& image, ModuleKind kind,
                   Address address, internal::ImagePaths& paths) {
  if (kind == ModuleKind::kProgram) return ProgramPathAt(address, paths);
  if (kind == ModuleKind::kVdso) return "[vdso]";
  return paths.Of(std::string(listing.names.data() + image.name, image.name_bytes), address);
}

void AddModules(const Listing& listing, const ListedImage& image, Address coroutine_end,
                internal::ImagePaths& paths, std::vector<Module>& modules) {
  const std::vector<ElfW(Phdr)> headers = HeadersOf(image);
  Module module{.load_bias = image.load_bias,
                .path = {},
                .build_id = BuildIdOf(image.load_bias, headers),
                .kind = KindOf(listing, image)};
  for (const ElfW(Phdr) & header : headers) {
    if (header.p_type == PT_GNU_EH_FRAME) module.unwind_address = image.load_bias + header.p_vaddr;
  }
  const auto page = static_cast<Address>(sysconf(_SC_PAGESIZE));
  std::optional<internal::EhFrameSection> eh_frame;  // read for an image without an index of it
  for (const ElfW(Phdr) & header : headers) {
    if (header.p_type != PT_LOAD || (header.p_flags & PF_X) == 0) continue;
    // As in /proc/self/maps: whole pages.
    const Address begin = image.load_bias + header.p_vaddr;
    module.start = begin & ~(page - 1);
    module.limit = (begin + header.p_memsz + page - 1) & ~(page - 1);
    module.file_offset = header.p_offset - (begin - module.start);
    module.stack_end =
        coroutine_end - module.start < module.limit - module.start ? coroutine_end : 0;
    if (module.path.empty()) module.path = PathOf(listing, image, module.kind, module.start, paths);
    if (module.build_id.empty()) module.file_version = internal::FileVersionOf(module.path);
    if (module.unwind_address == 0 && !eh_frame && module.kind != ModuleKind::kVdso)
      eh_frame = internal::ReadEhFrameSection(module.path == internal::ProgramPath() ? kThisProgram
                                                                                     : module.path);
    if (eh_frame && eh_frame->bytes != 0) {
      module.eh_frame_address = image.load_bias + eh_frame->address;
      module.eh_frame_bytes = eh_frame->bytes;
    }
    modules.push_back(module);
  }
}

// Whether the loader's own lock is usable. A fork does not handle that lock: if another thread was
// loading or unloading an image during the fork, no thread of the child will ever release it.
enum class LoaderState : std::uint8_t { kAnswers, kInDoubt, kStuck };
constinit std::atomic<LoaderState> loader_state{LoaderState::kAnswers};
// How long a child waits for the loader's first answer.
constexpr std::chrono::milliseconds kLoaderWait(2000);

// The last result of Modules(). While the loader is stuck, no image can be loaded or unloaded, so
// it stays true. Read and written under the loader mutex, which guards the pointer only. Never
// destroyed, because the collector may outlive the program's statics.
union LastModules {
  constexpr LastModules() : modules() {}
  ~LastModules() {}
  std::shared_ptr<const std::vector<Module>> modules;
};
constinit LastModules last_modules;

// Calls the loader on a thread that can be left behind.
void FindOutAboutLoader() {
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
  if (loader_state.load() == LoaderState::kInDoubt) FindOutAboutLoader();
  return loader_state.load() == LoaderState::kAnswers;
}

}  // namespace

void internal::DoubtLoader() { loader_state.store(LoaderState::kInDoubt); }

std::uint64_t LinuxPlatform::ModuleVersion() { return LoaderAnswers() ? LoaderVersion() : 0; }

std::vector<Module> LinuxPlatform::Modules() {
  if (!LoaderAnswers()) {
    std::unique_lock lock(internal::LoaderMutex());
    const std::shared_ptr<const std::vector<Module>> last = last_modules.modules;
    lock.unlock();
    return last == nullptr ? std::vector<Module>() : *last;
  }
  const Address coroutine_end = CoroutineEnd();
  std::vector<Module> modules;
  for (int i = 0; i < kMaxListings; ++i) {
    Listing listing = ListImages();
    AddOtherNamespaces(listing);
    internal::ImagePaths paths;
    modules.clear();
    for (const ListedImage& image : listing.images)
      AddModules(listing, image, coroutine_end, paths, modules);
    // If no image was loaded or unloaded meanwhile, the headers were those of the listed images.
    if (LoaderVersion() == listing.version) break;
  }
  auto last = std::make_shared<const std::vector<Module>>(modules);
  const std::lock_guard lock(internal::LoaderMutex());
  last_modules.modules.swap(last);
  return modules;
}

}  // namespace strobe
