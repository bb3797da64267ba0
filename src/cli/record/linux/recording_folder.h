// RecordingFolder: where the recorded processes export to.
#pragma once

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace strobe::internal {

// A folder that the recorded processes export to. They know it as a file of this process, so those
// that outlive this process leave nothing behind. All who have it open may write to it, because a
// program may become another user; nobody else comes through the one around it.
class RecordingFolder {
 public:
  RecordingFolder() {
    std::error_code error;
    const std::filesystem::path parent = std::filesystem::temp_directory_path(error);
    std::string pattern = (error ? std::filesystem::path("/tmp") : parent) / "strobe-record-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) return;
    around_ = pattern;
    path_ = (around_ / "profiles").string();
    if (mkdir(path_.c_str(), kForAll) != 0) return;
    file_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (file_ >= 0) fchmod(file_, kForAll);  // the umask does not count
  }
  ~RecordingFolder() {
    if (file_ >= 0) close(file_);
    std::error_code error;
    if (!around_.empty()) std::filesystem::remove_all(around_, error);
  }
  RecordingFolder(const RecordingFolder&) = delete;
  RecordingFolder& operator=(const RecordingFolder&) = delete;

  [[nodiscard]] bool is_open() const { return file_ >= 0; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string shared_path() const {
    return absl::StrCat("/proc/", getpid(), "/fd/", file_);
  }

 private:
  static constexpr mode_t kForAll = 01777;

  std::filesystem::path around_;
  std::string path_;
  int file_ = -1;
};

}  // namespace strobe::internal
