#include "ui/output_file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string_view>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "strobe/platform/linux/descriptor.h"

namespace strobe::internal {
namespace {

constexpr mode_t kNewFileMode = 0666;  // less the umask
constexpr mode_t kOwnFileMode = 0600;  // until it has that of the file before
constexpr int kMostTries = 100;        // for a name
constexpr mode_t kPermissionBits = 07777;
constexpr int kMostLinks = 40;  // as the kernel has it

absl::Status Failed(int error, const std::string& path) {
  return absl::ErrnoToStatus(error, absl::StrCat("cannot write ", path));
}

// 0 or errno.
int WriteAndClose(Descriptor file, std::string_view bytes) {
  if (!file.is_open()) return errno;
  const int error = WriteAll(file, bytes);
  return error != 0 ? error : file.Close();
}

// Where the path leads by links of the user and of root.
std::string FollowOwnLinks(std::string path) {
  struct stat link {};
  for (int i = 0; i < kMostLinks && lstat(path.c_str(), &link) == 0 && S_ISLNK(link.st_mode) &&
                  (link.st_uid == geteuid() || link.st_uid == 0);
       ++i) {
    std::error_code error;
    const std::filesystem::path target = std::filesystem::read_symlink(path, error);
    if (error) break;
    path = (std::filesystem::path(path).parent_path() / target).string();
  }
  return path;
}

// A name that is free, beside `path`.
Descriptor OpenBeside(const std::string& path, mode_t mode, std::string& name) {
  const std::filesystem::path place(path);
  int number = -1;
  for (int i = 0; number < 0 && i < kMostTries; ++i) {
    name =
        (place.parent_path() / absl::StrCat(".", place.filename().string(), ".", getpid(), ".", i))
            .string();
    number = open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
    if (number < 0 && errno != EEXIST) break;
  }
  return Descriptor(number);
}

// 0 or errno; `is_refused` says that there can be no file beside it.
int Replace(const std::string& path, const struct stat* existing, std::string_view bytes,
            bool& is_refused) {
  std::string temporary;
  Descriptor file = OpenBeside(path, existing != nullptr ? kOwnFileMode : kNewFileMode, temporary);
  is_refused = !file.is_open() &&
               (errno == EACCES || errno == EPERM || errno == EROFS || errno == ENAMETOOLONG);
  if (!file.is_open()) return errno;
  int error = 0;
  if (existing != nullptr) {
    // Only root gives files to others. That clears bits of the mode.
    static_cast<void>(fchown(file.get(), existing->st_uid, existing->st_gid) == 0);
    if (fchmod(file.get(), existing->st_mode & kPermissionBits) != 0) error = errno;
  }
  if (error == 0) error = WriteAndClose(std::move(file), bytes);
  if (error == 0 && rename(temporary.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) unlink(temporary.c_str());
  return error;
}

}  // namespace

absl::Status WriteFile(const std::string& path, const std::string& bytes) {
  const std::string place = FollowOwnLinks(path);
  struct stat existing {};
  const bool is_there = lstat(place.c_str(), &existing) == 0;
  const bool is_regular = is_there && S_ISREG(existing.st_mode);
  int error = 0;
  bool in_place = is_there && !is_regular && !S_ISLNK(existing.st_mode);
  if (!in_place) {
    error = access(place.c_str(), W_OK) != 0 && is_regular
                ? errno
                : Replace(place, is_regular ? &existing : nullptr, bytes, in_place);
    in_place = in_place && is_regular;
  }
  if (in_place) {
    const int flags = O_WRONLY | O_CLOEXEC | (is_regular ? O_TRUNC | O_NOFOLLOW : 0);
    error = WriteAndClose(Descriptor(open(place.c_str(), flags)), bytes);
  }
  return error == 0 ? absl::OkStatus() : Failed(error, path);
}

absl::Status CheckOutput(const std::string& path) {
  const std::string place = FollowOwnLinks(path);
  struct stat existing {};
  const bool is_there = lstat(place.c_str(), &existing) == 0 && !S_ISLNK(existing.st_mode);
  if (is_there && S_ISDIR(existing.st_mode)) return Failed(EISDIR, path);
  if (is_there) return access(place.c_str(), W_OK) == 0 ? absl::OkStatus() : Failed(errno, path);
  std::string temporary;
  if (!OpenBeside(place, kOwnFileMode, temporary).is_open()) return Failed(errno, path);
  unlink(temporary.c_str());
  return absl::OkStatus();
}

}  // namespace strobe::internal
