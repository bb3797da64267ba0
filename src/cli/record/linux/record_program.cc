#include "record_program.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "strobe/platform/linux/descriptor.h"
#include "ui/exit_status.h"

namespace strobe::internal {
namespace {

// As the kernel follows: an interpreter may be a script itself.
constexpr int kMaxInterpreters = 4;
constexpr const char* kLoaderName = "ld-linux-x86-64.so.2";
constexpr std::size_t kMaxScriptHead = 256;
constexpr std::string_view kDefaultPath = "/usr/local/bin:/usr/bin:/bin";

// A file, read at offsets.
class OpenedFile {
 public:
  explicit OpenedFile(const std::string& path) : file_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}

  [[nodiscard]] bool is_open() const { return file_.is_open(); }
  // The bytes that the file has there, at most those of `buffer`.
  std::size_t Read(std::uint64_t offset, void* buffer, std::size_t bytes) const {
    const ssize_t read = pread(file_.get(), buffer, bytes, static_cast<off_t>(offset));
    return read < 0 ? 0 : static_cast<std::size_t>(read);
  }

 private:
  Descriptor file_;
};

// The path in the first line of a script, or nothing.
std::string InterpreterOf(std::string_view head) {
  if (!head.starts_with("#!")) return {};
  head = head.substr(2, head.find('\n') - 2);
  const std::size_t begin = head.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return {};
  head.remove_prefix(begin);
  return std::string(head.substr(0, head.find_first_of(" \t")));
}

// True if the kernel gives the program rights that its user does not have. The loader then ignores
// what is preloaded, and the kernel ends perf events of the process (begin_new_exec).
bool HasMoreRights(const std::string& path, const struct stat& status) {
  if (geteuid() == 0 && getuid() == 0) return false;
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != getuid()) return true;
  if ((status.st_mode & S_ISGID) != 0 && status.st_gid != getgid()) return true;
  return getxattr(path.c_str(), "security.capability", nullptr, 0) > 0;
}

// True for glibc's loader, begun with the name of the program that it loads.
bool IsLoader(const std::string& path) {
  std::error_code error;
  const std::string name = std::filesystem::canonical(path, error).filename().string();
  return name == kLoaderName || (name.starts_with("ld-2.") && name.ends_with(".so"));
}

struct Refusal {
  std::string sentence;  // empty if it can be recorded
  bool fits_perf = false;
};

// Why nothing can be preloaded into this ELF file, in half a sentence.
Refusal ElfRefusal(const std::string& file_path, const OpenedFile& file) {
  Elf64_Ehdr header{};
  if (file.Read(0, &header, sizeof(header)) != sizeof(header)) return {"is no complete program"};
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return {"is a 32-bit program"};
  if (header.e_machine != EM_X86_64) return {"is a program for another architecture"};
  for (std::size_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    const std::uint64_t offset = header.e_phoff + i * sizeof(segment);
    if (file.Read(offset, &segment, sizeof(segment)) != sizeof(segment)) break;
    if (segment.p_type != PT_INTERP) continue;
    std::array<char, kMaxScriptHead> loader{};
    const std::size_t read = file.Read(segment.p_offset, loader.data(), loader.size() - 1);
    const std::string_view path(loader.data(), strnlen(loader.data(), read));
    if (path.ends_with(absl::StrCat("/", kLoaderName))) return {};
    return {"is linked with another C library than glibc", true};
  }
  if (IsLoader(file_path)) return {};
  return {"is statically linked", true};
}

// Why the program at `path`, or what interprets it, cannot be recorded that way.
Refusal RefusalOf(std::string path, RecordedBy how) {
  for (int i = 0; i < kMaxInterpreters; ++i) {
    struct stat status {};
    if (stat(path.c_str(), &status) != 0) return {};  // exec says what is wrong
    const OpenedFile file(path);
    std::array<char, kMaxScriptHead> head{};
    const std::size_t read = file.is_open() ? file.Read(0, head.data(), head.size()) : 0;
    const std::string_view text(head.data(), read);
    const bool is_elf = text.starts_with(std::string_view(ELFMAG, SELFMAG));
    if ((is_elf || !file.is_open()) && HasMoreRights(path, status)) {
      return {.sentence = absl::StrCat(
                  path,
                  " runs with more rights than its user, who may not look into it; to record it, "
                  "run strobe record as root")};
    }
    if (is_elf && how == RecordedBy::kPerfEvents) return {};
    if (is_elf) {
      Refusal refusal = ElfRefusal(path, file);
      if (refusal.sentence.empty()) return {};
      refusal.sentence = absl::StrCat(path, " ", refusal.sentence, ", so nothing can be preloaded");
      return refusal;
    }
    path = InterpreterOf(text);
    if (path.empty()) return {};
  }
  return {};
}

bool IsExecutableFile(const std::string& path, int& error) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    error = errno;
    return false;
  }
  const bool is_file = S_ISREG(status.st_mode);
  if (is_file && access(path.c_str(), X_OK) == 0) return true;
  error = is_file ? errno : S_ISDIR(status.st_mode) ? EISDIR : EACCES;
  return false;
}

// Why the file at `path` is no program, and what to do; empty if the system's `error` says it best.
std::string WhyNoProgram(const std::string& path, int error) {
  if (error == EISDIR) return absl::StrCat(path, " is a directory, and no program");
  std::error_code ignored;
  if (error != EACCES || !std::filesystem::is_regular_file(path, ignored)) return {};
  std::array<char, SELFMAG> head{};
  const std::size_t read = OpenedFile(path).Read(0, head.data(), head.size());
  const std::string_view text(head.data(), read);
  if (text.starts_with("#!") || text == std::string_view(ELFMAG, SELFMAG))
    return absl::StrCat(path, " may not be executed: chmod +x ", path);
  return absl::StrCat(path,
                      " is no program: record what a compiler makes of it, or the interpreter that "
                      "runs it");
}

RecordedProgram Refused(std::string sentence, int status) {
  return {.path = {}, .refusal = std::move(sentence), .status = status};
}

RecordedProgram Found(std::string path) {
  return {.path = std::move(path), .refusal = {}, .status = kCannotRun};
}

RecordedProgram FindInPath(const std::string& name) {
  const char* const variable = std::getenv("PATH");
  std::string_view folders = variable != nullptr ? variable : kDefaultPath;
  int first_error = 0;
  for (;;) {
    const std::string_view folder = folders.substr(0, folders.find(':'));
    std::string path = folder.empty() ? name : absl::StrCat(std::string(folder), "/", name);
    int error = 0;
    if (IsExecutableFile(path, error)) return Found(std::move(path));
    if (error == EACCES && first_error == 0) first_error = error;
    if (folder.size() == folders.size()) break;
    folders.remove_prefix(folder.size() + 1);
  }
  if (first_error != 0) return Refused(absl::StrCat(name, ": permission denied"), kCannotRun);
  int error = 0;
  const bool is_here = IsExecutableFile(name, error);
  if (std::string why = WhyNoProgram(name, error); !why.empty())
    return Refused(std::move(why), kCannotRun);
  const std::string advice = is_here ? absl::StrCat("; did you mean ./", name, "?") : "";
  return Refused(absl::StrCat(name, ": command not found", advice), kNotFound);
}

RecordedProgram Find(const std::string& name) {
  if (name.empty()) return Refused("the program's name is empty", kNotFound);
  if (name.find('/') == std::string::npos) return FindInPath(name);
  int error = 0;
  if (IsExecutableFile(name, error)) return Found(name);
  if (std::string why = WhyNoProgram(name, error); !why.empty())
    return Refused(std::move(why), kCannotRun);
  return Refused(absl::StrCat(name, ": ", std::strerror(error)),
                 error == ENOENT || error == ENOTDIR ? kNotFound : kCannotRun);
}

}  // namespace

RecordedProgram FindProgram(const std::string& name, RecordedBy how) {
  RecordedProgram program = Find(name);
  if (!program.refusal.empty() || how == RecordedBy::kNothing) return program;
  Refusal refusal = RefusalOf(program.path, how);
  program.refusal = std::move(refusal.sentence);
  program.fits_perf = refusal.fits_perf;
  return program;
}

}  // namespace strobe::internal
