#include "export/directory.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirectoryMode = 0700;
constexpr std::int64_t kNsPerSecond = 1'000'000'000;
constexpr unsigned kNoReplace = 1;  // RENAME_NOREPLACE of <linux/fs.h>

absl::Status SystemError(int error, const char* doing, const std::string& path) {
  return absl::ErrnoToStatus(error, absl::StrCat(doing, " ", path));
}

class FileDescriptor {
 public:
  explicit FileDescriptor(int number) : number_(number) {}
  FileDescriptor(const FileDescriptor&) = delete;
  FileDescriptor& operator=(const FileDescriptor&) = delete;
  ~FileDescriptor() { Close(); }

  [[nodiscard]] int get() const { return number_; }
  int Release() { return std::exchange(number_, -1); }
  // 0 or errno: some file systems say only here that the disk is full.
  int Close() {
    return number_ >= 0 && close(std::exchange(number_, -1)) != 0 && errno != EINTR ? errno : 0;
  }

 private:
  int number_;
};

// 0 or errno.
int WriteAll(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = write(descriptor, bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

// Whether this program has more rights than its user, who therefore must not choose what it
// writes to.
bool IsPrivileged() { return getauxval(AT_SECURE) != 0; }

}  // namespace

std::string Directory::AbsolutePath(const std::string& path) {
  if (IsPrivileged()) return path;  // relative to nothing but where its user stands
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

absl::StatusOr<Directory> Directory::Open(const std::string& path) {
  if (IsPrivileged() && !path.starts_with('/')) {
    return absl::PermissionDeniedError(absl::StrCat(
        "a program with more rights than its user needs an absolute path instead of ", path));
  }
  // As mkdir -p, one level after the other; "already there" is found out by opening it.
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string level = path.substr(0, slash);
    if (mkdir(level.c_str(), kDirectoryMode) != 0 && errno != EEXIST &&
        (slash == std::string::npos || errno == ENOTDIR)) {
      return SystemError(errno, "cannot create directory", level);
    }
    if (slash == std::string::npos) break;
  }
  const int descriptor =
      open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC | (IsPrivileged() ? O_NOFOLLOW : 0));
  if (descriptor < 0) return SystemError(errno, "cannot open directory", path);
  FileDescriptor file(descriptor);
  std::string own_path = path;  // may throw
  return Directory(std::move(own_path), file.Release());
}

Directory::~Directory() {
  if (handle_ != kNone) close(static_cast<int>(handle_));
}

absl::Status Directory::Write(const std::string& name, std::string_view bytes) const {
  const int directory = static_cast<int>(handle_);
  int descriptor;
  do {
    descriptor = openat(directory, name.c_str(),
                        O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, kFileMode);
  } while (descriptor < 0 && errno == EINTR);
  if (descriptor < 0) return SystemError(errno, "cannot create", PathOf(name));
  FileDescriptor file(descriptor);
  absl::Status status;
  // Whatever the umask says.
  if (fchmod(file.get(), kFileMode) != 0)
    status = SystemError(errno, "cannot set the mode of", PathOf(name));
  if (status.ok()) {
    if (const int error = WriteAll(file.get(), bytes); error != 0)
      status = SystemError(error, "cannot write", PathOf(name));
  }
  if (const int error = file.Close(); error != 0 && status.ok())
    status = SystemError(error, "cannot close", PathOf(name));
  if (!status.ok()) unlinkat(directory, name.c_str(), 0);
  return status;
}

absl::Status Directory::Rename(const std::string& from, const std::string& to) const {
  const int directory = static_cast<int>(handle_);
  // The system call itself: C libraries have no function for it, as musl, or have it late, as glibc
  // since 2.28.
  if (syscall(SYS_renameat2, directory, from.c_str(), directory, to.c_str(), kNoReplace) == 0)
    return absl::OkStatus();
  int error = errno;
  if (error == EINVAL || error == ENOSYS) {
    // A file system without this kind of rename: the look before is not atomic, but only a second
    // profiler of this process could come between.
    struct stat existing;
    if (fstatat(directory, to.c_str(), &existing, AT_SYMLINK_NOFOLLOW) == 0) {
      error = EEXIST;
    } else if (renameat(directory, from.c_str(), directory, to.c_str()) == 0) {
      return absl::OkStatus();
    } else {
      error = errno;
    }
  }
  return SystemError(error, "cannot rename a temporary to", PathOf(to));
}

bool Directory::Remove(const std::string& name) const {
  return unlinkat(static_cast<int>(handle_), name.c_str(), 0) == 0;
}

std::vector<DirectoryFile> Directory::List(
    std::size_t max_entries, const std::function<bool(std::string_view)>& is_wanted) const {
  std::vector<DirectoryFile> files;
  // A descriptor of its own, because closedir closes it and a position is shared between
  // duplicates.
  const int descriptor = openat(static_cast<int>(handle_), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  const std::unique_ptr<DIR, int (*)(DIR*)> directory(
      descriptor >= 0 ? fdopendir(descriptor) : nullptr, &closedir);
  if (directory == nullptr) {
    if (descriptor >= 0) close(descriptor);
    return files;
  }
  for (std::size_t i = 0; i < max_entries; ++i) {
    const dirent* entry = readdir(directory.get());
    if (entry == nullptr) break;
    struct stat status;
    if (!is_wanted(entry->d_name) ||
        fstatat(descriptor, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 ||
        !S_ISREG(status.st_mode) || status.st_uid != geteuid()) {
      continue;
    }
    files.push_back({entry->d_name, static_cast<std::uint64_t>(status.st_size),
                     std::int64_t{status.st_mtim.tv_sec} * kNsPerSecond + status.st_mtim.tv_nsec});
  }
  return files;
}

}  // namespace strobe::internal
