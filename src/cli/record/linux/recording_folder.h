// RecordingFolder: where the recorded processes export to.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace strobe::internal {

// The processes know the folder below a file of this process, so those that outlive this process
// leave nothing behind: no other process has one of this name. A program
// that has it open may write to it as another user, too; the folder around it is closed to other
// users. If this process is killed, the folder stays.
class RecordingFolder {
 public:
  RecordingFolder();
  ~RecordingFolder();
  RecordingFolder(const RecordingFolder&) = delete;
  RecordingFolder& operator=(const RecordingFolder&) = delete;

  [[nodiscard]] bool is_open() const { return file_ >= 0; }
  [[nodiscard]] const std::string& path() const { return path_; }
  [[nodiscard]] std::string shared_path() const;
  // It stays, with what it holds.
  void Keep() { is_kept_ = true; }
  // The folder around it.
  [[nodiscard]] std::string private_path() const { return around_.string(); }

  // Those of this user, of commands that have been killed, that hold profiles.
  static std::vector<std::string> OfKilled();

 private:
  std::filesystem::path around_;
  std::string path_;
  bool is_kept_ = false;
  int file_ = -1;  // locked: see OfKilled
};

}  // namespace strobe::internal
