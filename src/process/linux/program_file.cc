#include "program_file.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace strobe::internal {
namespace {

// As the kernel follows: an interpreter may be a script itself.
constexpr int kMaxInterpreters = 4;
constexpr std::size_t kMaxSegments = 128;  // looked at; programs have a dozen
constexpr std::string_view kLoaderName = "ld-linux-x86-64.so.2";
constexpr const char* kLoader = "/lib64/ld-linux-x86-64.so.2";
using Head = std::array<char, ProgramFile::kMaxScriptHead>;

// A file, read at offsets: most programs tell all within their first bytes. Its number is a low one
// for some microseconds.
class OpenedProgram {
 public:
  // Does not wait, whatever stands at the path by now.
  explicit OpenedProgram(const char* path)
      : number_(open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)) {
    if (number_ >= 0) count_ = ReadFile(0, first_.data(), first_.size());
  }
  ~OpenedProgram() {
    if (number_ >= 0) close(number_);
  }
  OpenedProgram(const OpenedProgram&) = delete;
  OpenedProgram& operator=(const OpenedProgram&) = delete;

  [[nodiscard]] bool is_open() const { return number_ >= 0; }
  // The bytes that the file has there, at most those of `buffer`.
  std::size_t Read(std::uint64_t offset, void* buffer, std::size_t bytes) const {
    if (offset > count_ || bytes > count_ - offset) return ReadFile(offset, buffer, bytes);
    std::memcpy(buffer, first_.data() + offset, bytes);
    return bytes;
  }

 private:
  std::size_t ReadFile(std::uint64_t offset, void* buffer, std::size_t bytes) const {
    const ssize_t read = pread(number_, buffer, bytes, static_cast<off_t>(offset));
    return read < 0 ? 0 : static_cast<std::size_t>(read);
  }

  const int number_;
  std::array<char, 1152> first_;
  std::size_t count_ = 0;  // of them
};

// Writes the path in the first line of a script. False if there is none.
bool FindInterpreter(std::string_view head, Head& interpreter) {
  if (!head.starts_with("#!")) return false;
  head = head.substr(2, head.find('\n') - 2);
  const std::size_t begin = head.find_first_not_of(" \t");
  if (begin == std::string_view::npos) return false;
  head.remove_prefix(begin);
  head = head.substr(0, std::min(head.find_first_of(" \t"), interpreter.size() - 1));
  *std::ranges::copy(head, interpreter.begin()).out = '\0';
  return true;
}

// What the kernel goes by (AT_SECURE). That a mount has no such bits (nosuid) is not looked at.
bool HasOtherRights(const char* path, const struct stat& status) {
  const bool sets_group = (status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0;
  const uid_t user = (status.st_mode & S_ISUID) != 0 ? status.st_uid : geteuid();
  const gid_t group = sets_group ? status.st_gid : getegid();
  if (user != getuid() || group != getgid()) return true;
  return getuid() != 0 && getxattr(path, "security.capability", nullptr, 0) > 0;
}

// True for glibc's loader, begun with the name of the program that it loads.
bool IsLoader(std::string_view path, const struct stat& status) {
  const std::string_view name = path.substr(path.rfind('/') + 1);
  if (name == kLoaderName || (name.starts_with("ld-2.") && name.ends_with(".so"))) return true;
  struct stat loader {};
  return stat(kLoader, &loader) == 0 && loader.st_dev == status.st_dev &&
         loader.st_ino == status.st_ino;
}

ProgramKind KindByLoader(const OpenedProgram& file, const Elf64_Phdr& segment) {
  Head text{};
  const std::size_t read = file.Read(segment.p_offset, text.data(), text.size() - 1);
  const std::string_view path(text.data(), strnlen(text.data(), read));
  return path.substr(path.rfind('/') + 1) == kLoaderName ? ProgramKind::kPreloadable
                                                         : ProgramKind::kOtherLibrary;
}

ProgramKind KindOf(const char* path, const struct stat& status, const OpenedProgram& file) {
  Elf64_Ehdr header{};
  if (file.Read(0, &header, sizeof(header)) != sizeof(header)) return ProgramKind::kIncomplete;
  if (header.e_ident[EI_CLASS] != ELFCLASS64) return ProgramKind::k32Bit;
  if (header.e_machine != EM_X86_64) return ProgramKind::kOtherArchitecture;
  for (std::size_t i = 0; i < std::min<std::size_t>(header.e_phnum, kMaxSegments); ++i) {
    Elf64_Phdr segment{};
    const std::uint64_t offset = header.e_phoff + i * sizeof(segment);
    if (file.Read(offset, &segment, sizeof(segment)) != sizeof(segment)) break;
    if (segment.p_type == PT_INTERP) return KindByLoader(file, segment);
  }
  return IsLoader(path, status) ? ProgramKind::kPreloadable : ProgramKind::kStatic;
}

}  // namespace

ProgramFile JudgeProgramFile(const char* path) noexcept {
  ProgramFile program;
  for (int i = 0; i < kMaxInterpreters; ++i) {
    struct stat status {};
    if (stat(path, &status) != 0 || !S_ISREG(status.st_mode)) break;
    const OpenedProgram file(path);
    Head head{};
    const std::size_t read = file.is_open() ? file.Read(0, head.data(), head.size()) : 0;
    const std::string_view text(head.data(), read);
    const bool is_elf = text.starts_with(std::string_view(ELFMAG, SELFMAG));
    if (is_elf || !file.is_open()) program.has_other_rights = HasOtherRights(path, status);
    if (is_elf) program.kind = KindOf(path, status, file);
    if (is_elf || !FindInterpreter(text, program.interpreter)) break;
    path = program.interpreter.data();
  }
  return program;
}

}  // namespace strobe::internal
