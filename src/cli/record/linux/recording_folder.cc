#include "recording_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

constexpr mode_t kForAll = 01777;
constexpr std::string_view kNameBegin = "strobe-record-";
constexpr std::string_view kProfilesBegin = "profiles-";

std::filesystem::path Parent() {
  std::error_code error;
  const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
  return error ? std::filesystem::path("/tmp") : parent;
}

// The folder's name ends as that of the one around it does.
std::filesystem::path ProfilesIn(const std::filesystem::path& around) {
  const std::string name = around.filename().string();
  return around / std::string(kProfilesBegin).append(name.substr(kNameBegin.size()));
}

bool IsOfThisUser(const std::filesystem::path& folder) {
  struct stat status {};
  return lstat(folder.c_str(), &status) == 0 && S_ISDIR(status.st_mode) &&
         status.st_uid == geteuid();
}

// The lock ends with the command, however that ends.
bool IsLocked(const std::filesystem::path& folder) {
  const int file = open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (file < 0) return true;
  const bool is_locked = flock(file, LOCK_SH | LOCK_NB) != 0;
  close(file);
  return is_locked;
}

}  // namespace

RecordingFolder::RecordingFolder() {
  std::string pattern = (Parent() / kNameBegin).string() + "XXXXXX";
  if (mkdtemp(pattern.data()) == nullptr) return;
  around_ = pattern;
  path_ = ProfilesIn(around_).string();
  if (mkdir(path_.c_str(), kForAll) != 0) return;
  chmod(path_.c_str(), kForAll);  // the umask does not count
  file_ = open(around_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (file_ >= 0) flock(file_, LOCK_EX | LOCK_NB);
}

RecordingFolder::~RecordingFolder() {
  std::error_code error;
  if (!around_.empty() && !is_kept_) std::filesystem::remove_all(around_, error);
  if (file_ >= 0) close(file_);
}

std::string RecordingFolder::shared_path() const {
  return absl::StrCat("/proc/", getpid(), "/fd/", file_, "/",
                      std::filesystem::path(path_).filename().string());
}

std::vector<std::string> RecordingFolder::OfKilled() {
  std::vector<std::string> folders;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(Parent(), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::filesystem::path& around = entry->path();
    if (!around.filename().string().starts_with(kNameBegin) || !IsOfThisUser(around)) continue;
    const std::filesystem::path profiles = ProfilesIn(around);
    std::error_code ignored;
    if (!IsLocked(around) && !std::filesystem::is_empty(profiles, ignored) && !ignored)
      folders.push_back(profiles.string());
  }
  return folders;
}

}  // namespace strobe::internal
