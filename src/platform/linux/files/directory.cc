#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "few_files.h"
#include "strobe/base/page.h"
#include "strobe/export/profile_directories.h"
#include "strobe/platform/linux/descriptor.h"
#include "strobe/platform/linux/linux_platform.h"

namespace strobe {
namespace {

using internal::Descriptor;
using internal::kPageBytes;

constexpr mode_t kFileMode = 0600;
constexpr mode_t kDirectoryMode = 0700;
constexpr mode_t kModeBits = 01777;  // who may use a directory, and remove whose files
constexpr std::int64_t kNsPerSecond = 1'000'000'000;
constexpr unsigned kNoReplace = 1;  // RENAME_NOREPLACE of <linux/fs.h>

absl::Status SystemError(int error, const char* doing, const std::string& path) {
  return absl::ErrnoToStatus(error, absl::StrCat(doing, " ", path));
}

// Like renameat, but never replaces a file. 0 or errno.
int RenameWithoutReplacing(int directory, const std::string& from, const std::string& to) {
  // The system call itself: musl has no function for it, and glibc has one since 2.28 only.
  if (syscall(SYS_renameat2, directory, from.c_str(), directory, to.c_str(), kNoReplace) == 0)
    return 0;
  if (errno != EINVAL && errno != ENOSYS) return errno;
  // A file system without this kind of rename. The check before is not atomic, but only a second
  // profiler of this process could come between.
  struct stat existing;
  if (fstatat(directory, to.c_str(), &existing, AT_SYMLINK_NOFOLLOW) == 0) return EEXIST;
  return renameat(directory, from.c_str(), directory, to.c_str()) == 0 ? 0 : errno;
}

// A descriptor of a file in the directory, or -1.
int OpenAt(int directory, const std::string& name, int flags, mode_t mode = 0) {
  int descriptor;
  do {
    descriptor = openat(directory, name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, mode);
  } while (descriptor < 0 && errno == EINTR);
  return descriptor;
}

// A program with more rights than its user follows no link that the user may have made.
int OpenDirectory(const std::string& path) {
  return open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC |
                                (LinuxPlatform::HasMoreRights() ? O_NOFOLLOW : 0));
}

class LinuxDirectory;

class LinuxTemporaryFile final : public TemporaryFile {
 public:
  LinuxTemporaryFile(const LinuxDirectory& directory, std::string name)
      : directory_(directory), name_(std::move(name)) {}
  ~LinuxTemporaryFile() override;
  LinuxTemporaryFile(const LinuxTemporaryFile&) = delete;
  LinuxTemporaryFile& operator=(const LinuxTemporaryFile&) = delete;

  [[nodiscard]] absl::Status Write(std::string_view bytes);
  [[nodiscard]] absl::Status RenameTo(const std::string& name) override;
  [[nodiscard]] absl::Status Sync() const override;

 private:
  const LinuxDirectory& directory_;
  const std::string name_;
  bool exists_ = false;
};

// A lock of a file. It ends with this object, with the process and with an exec, and no fork's
// child has it, but for one that is forked just when it is taken: the lock belongs to the open
// file, and what holds that is no descriptor, but a mapping that no child inherits.
class FileLock {
 public:
  FileLock() = default;
  ~FileLock() {
    if (IsHeld()) munmap(file_, kPageBytes);  // in a child something else may be there
    if (is_held_ != nullptr) munmap(is_held_, kPageBytes);
  }
  FileLock(const FileLock&) = delete;
  FileLock& operator=(const FileLock&) = delete;

  // Of a file in the directory, which it makes if there is none.
  bool TryLock(int directory, const std::string& name);

 private:
  [[nodiscard]] bool IsHeld() const { return is_held_ != nullptr && *is_held_; }

  void* file_ = nullptr;
  bool* is_held_ = nullptr;  // on a page that the kernel clears in each child
};

bool FileLock::TryLock(int directory, const std::string& name) {
  if (IsHeld()) return true;
  const Descriptor file(OpenAt(directory, name, O_RDWR | O_CREAT, kFileMode));
  if (file.get() < 0) return false;
  if (is_held_ == nullptr) {
    void* const page =
        mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED) return false;
    is_held_ = new (page) bool(false);
  }
  // Private, because not every file system has shared ones. It is never touched.
  void* const mapping = mmap(nullptr, kPageBytes, PROT_NONE, MAP_PRIVATE, file.get(), 0);
  if (mapping == MAP_FAILED) return false;
  madvise(is_held_, kPageBytes, MADV_WIPEONFORK);  // Linux 4.14
  if (madvise(mapping, kPageBytes, MADV_DONTFORK) != 0 ||
      flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    munmap(mapping, kPageBytes);
    return false;
  }
  file_ = mapping;
  *is_held_ = true;
  return true;
}

class LinuxDirectory final : public ProfileDirectory {
 public:
  // Of a folder, the path is opened again only by a program with no more rights than its user: a
  // link may be on the way.
  LinuxDirectory(const std::string& path, Descriptor file, bool is_folder = false)
      : ProfileDirectory(path),
        may_reopen_(!is_folder || !LinuxPlatform::HasMoreRights()),
        file_(std::move(file)) {}
  LinuxDirectory(const LinuxDirectory&) = delete;
  LinuxDirectory& operator=(const LinuxDirectory&) = delete;

  // False as well in a process that may open few files: none of them is held.
  [[nodiscard]] bool IsThere() const override {
    if (internal::HasFewFiles()) return false;
    struct stat status {};
    return file_.is_open() && fstat(file_.get(), &status) == 0 && status.st_nlink > 0;
  }
  [[nodiscard]] absl::StatusOr<std::unique_ptr<ProfileDirectory>> OpenFolder(
      const std::string& name) const override;
  [[nodiscard]] absl::StatusOr<std::unique_ptr<TemporaryFile>> Write(
      const std::string& name, std::string_view bytes) const override;
  [[nodiscard]] bool Remove(const std::string& name) const override {
    return unlinkat(Number(), name.c_str(), 0) == 0;
  }
  [[nodiscard]] absl::StatusOr<std::string> Read(const std::string& name,
                                                 std::uint64_t max_bytes) const override;
  [[nodiscard]] absl::Status Rename(const std::string& from, const std::string& to) const override {
    const int error = RenameWithoutReplacing(Number(), from, to);
    return error == 0 ? absl::OkStatus()
                      : SystemError(error, "cannot rename a file to", PathOf(to));
  }
  [[nodiscard]] absl::Status Sync() const override {
    return fsync(Number()) == 0 ? absl::OkStatus()
                                : SystemError(errno, "cannot sync directory", path());
  }
  [[nodiscard]] bool TryLock() override { return lock_.TryLock(Number(), ".lock"); }
  [[nodiscard]] std::vector<DirectoryFile> List(
      std::size_t max_entries,
      const std::function<bool(std::string_view)>& is_wanted) const override;

  // The directory's descriptor, until the next call. If the program has closed it, the directory is
  // the one that has the path now.
  [[nodiscard]] int Number() const {
    if (!file_.is_open() && may_reopen_) file_ = Descriptor(OpenDirectory(path()));
    return file_.get();
  }

 private:
  const bool may_reopen_;
  mutable Descriptor file_;
  FileLock lock_;
};

LinuxTemporaryFile::~LinuxTemporaryFile() {
  if (exists_) unlinkat(directory_.Number(), name_.c_str(), 0);
}

absl::Status LinuxTemporaryFile::Write(std::string_view bytes) {
  Descriptor file(OpenAt(directory_.Number(), name_, O_WRONLY | O_CREAT | O_EXCL, kFileMode));
  if (!file.is_open()) return SystemError(errno, "cannot create", directory_.PathOf(name_));
  exists_ = true;
  // The umask does not count.
  if (fchmod(file.get(), kFileMode) != 0)
    return SystemError(errno, "cannot set the mode of", directory_.PathOf(name_));
  if (const int error = WriteAll(file, bytes); error != 0)
    return SystemError(error, "cannot write", directory_.PathOf(name_));
  if (const int error = file.Close(); error != 0)
    return SystemError(error, "cannot close", directory_.PathOf(name_));
  return absl::OkStatus();
}

absl::Status LinuxTemporaryFile::RenameTo(const std::string& name) {
  if (const int error = RenameWithoutReplacing(directory_.Number(), name_, name); error != 0)
    return SystemError(error, "cannot rename a temporary file to", directory_.PathOf(name));
  exists_ = false;
  return absl::OkStatus();
}

absl::Status LinuxTemporaryFile::Sync() const {
  const Descriptor file(OpenAt(directory_.Number(), name_, O_WRONLY));
  if (file.get() < 0 || fsync(file.get()) != 0)
    return SystemError(errno, "cannot sync", directory_.PathOf(name_));
  return absl::OkStatus();
}

absl::StatusOr<std::string> LinuxDirectory::Read(const std::string& name,
                                                 std::uint64_t max_bytes) const {
  const Descriptor file(OpenAt(Number(), name, O_RDONLY));
  struct stat status;
  if (file.get() < 0 || fstat(file.get(), &status) != 0)
    return SystemError(errno, "cannot open", PathOf(name));
  if (static_cast<std::uint64_t>(status.st_size) > max_bytes)
    return SystemError(EFBIG, "cannot read", PathOf(name));
  std::string bytes(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t size = 0;
  while (size < bytes.size()) {
    const ssize_t got = read(file.get(), bytes.data() + size, bytes.size() - size);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return SystemError(errno, "cannot read", PathOf(name));
    if (got == 0) break;
    size += static_cast<std::size_t>(got);
  }
  bytes.resize(size);
  return bytes;
}

absl::StatusOr<std::unique_ptr<ProfileDirectory>> LinuxDirectory::OpenFolder(
    const std::string& name) const {
  const bool is_new = mkdirat(Number(), name.c_str(), kDirectoryMode) == 0;
  if (!is_new && errno != EEXIST)
    return SystemError(errno, "cannot create directory", PathOf(name));
  const bool may_follow = !is_new && !LinuxPlatform::HasMoreRights();
  Descriptor folder(openat(Number(), name.c_str(),
                           O_RDONLY | O_DIRECTORY | O_CLOEXEC | (may_follow ? 0 : O_NOFOLLOW)));
  if (!folder.is_open()) return SystemError(errno, "cannot open directory", PathOf(name));
  // Others may export into this directory: then so they may into its folder.
  struct stat own {};
  if (is_new && fstat(Number(), &own) == 0) fchmod(folder.get(), own.st_mode & kModeBits);
  return std::make_unique<LinuxDirectory>(PathOf(name), std::move(folder), /*is_folder=*/true);
}

absl::StatusOr<std::unique_ptr<TemporaryFile>> LinuxDirectory::Write(const std::string& name,
                                                                     std::string_view bytes) const {
  auto file = std::make_unique<LinuxTemporaryFile>(*this, name);
  if (absl::Status status = file->Write(bytes); !status.ok()) return status;
  return file;
}

std::vector<DirectoryFile> LinuxDirectory::List(
    std::size_t max_entries, const std::function<bool(std::string_view)>& is_wanted) const {
  std::vector<DirectoryFile> files;
  // A descriptor of its own: closedir closes it, and duplicates share a position.
  const int descriptor = openat(Number(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
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

class LinuxDirectories final : public ProfileDirectories {
 public:
  [[nodiscard]] std::string AbsolutePath(const std::string& path) const override;
  [[nodiscard]] absl::StatusOr<std::unique_ptr<ProfileDirectory>> Open(
      const std::string& path) const override;
  [[nodiscard]] absl::StatusOr<std::unique_ptr<ProfileDirectory>> OpenExisting(
      const std::string& path) const override;
};

std::string LinuxDirectories::AbsolutePath(const std::string& path) const {
  if (LinuxPlatform::HasMoreRights()) return path;  // the user chose the working directory
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(path, error);
  return error ? path : absolute.lexically_normal().string();
}

absl::StatusOr<std::unique_ptr<ProfileDirectory>> LinuxDirectories::Open(
    const std::string& path) const {
  if (LinuxPlatform::HasMoreRights() && !path.starts_with('/')) {
    return absl::PermissionDeniedError(absl::StrCat(
        "a program with more rights than its user needs an absolute path instead of ", path));
  }
  // Nothing is made below the files of a process: another one may have its id by now.
  if (path.starts_with("/proc/")) return OpenExisting(path);
  // As mkdir -p, one level after the other. The last open tells if all levels are directories.
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string level = path.substr(0, slash);
    if (mkdir(level.c_str(), kDirectoryMode) != 0 && errno != EEXIST &&
        (slash == std::string::npos || errno == ENOTDIR)) {
      return SystemError(errno, "cannot create directory", level);
    }
    if (slash == std::string::npos) break;
  }
  return OpenExisting(path);
}

absl::StatusOr<std::unique_ptr<ProfileDirectory>> LinuxDirectories::OpenExisting(
    const std::string& path) const {
  Descriptor file(OpenDirectory(path));
  if (!file.is_open()) return SystemError(errno, "cannot open directory", path);
  return std::make_unique<LinuxDirectory>(path, std::move(file));
}

constexpr LinuxDirectories kProfileDirectories;

}  // namespace

const ProfileDirectories& LinuxPlatform::Directories() { return kProfileDirectories; }

}  // namespace strobe
