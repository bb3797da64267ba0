// A directory that profiles are written to: what the file exporter asks of an operating system.
// Each system's part is under platform/.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace strobe::internal {

// A regular file in it, of this user.
struct DirectoryFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;  // Unix time
};

// Held open, so that all that is done happens in the same place even if it is moved
// meanwhile. Paths and names are UTF-8, names without a slash. Errors say what was tried, the path
// and the system's reason.
class Directory {
 public:
  // The path from the root and in its shortest form, so that it stays the same wherever the program
  // goes; as it is where that is not known. Where the system's paths are no bytes, what is not
  // valid UTF-8 becomes U+FFFD.
  static std::string AbsolutePath(const std::string& path);
  // Creates it first where it is missing, and the levels above it, for this user alone where the
  // system knows such a mode.
  static absl::StatusOr<Directory> Open(const std::string& path);
  Directory(Directory&& other) noexcept
      : path_(std::move(other.path_)), handle_(std::exchange(other.handle_, kNone)) {}
  Directory& operator=(Directory&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Directory();

  // A new file for this user alone. AlreadyExists where there is anything of that name; leaves
  // nothing behind if it fails.
  [[nodiscard]] absl::Status Write(const std::string& name, std::string_view bytes) const;
  // Never replaces anything: AlreadyExists.
  [[nodiscard]] absl::Status Rename(const std::string& from, const std::string& to) const;
  // False where it could not be removed.
  [[nodiscard]] bool Remove(const std::string& name) const;
  // Those of its first `max_entries` entries whose name `is_wanted`.
  [[nodiscard]] std::vector<DirectoryFile> List(
      std::size_t max_entries, const std::function<bool(std::string_view)>& is_wanted) const;
  // Of the entry of that name.
  [[nodiscard]] std::string PathOf(const std::string& name) const { return path_ + "/" + name; }

 private:
  Directory(std::string path, std::intptr_t handle) : path_(std::move(path)), handle_(handle) {}

  std::string path_;
  std::intptr_t handle_;  // the system's, or kNone
  static constexpr std::intptr_t kNone = -1;
};

}  // namespace strobe::internal
