// ProfileDirectories: what an exporter of files asks of an operating system. A Platform has one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace strobe {

// A regular file in a directory, owned by this user.
struct DirectoryFile {
  std::string name;
  std::uint64_t bytes = 0;
  std::int64_t modified_ns = 0;  // Unix time
};

// A file that has been written, but has no final name yet. The destructor removes the file, unless
// RenameTo has succeeded. The destructor needs no memory.
class TemporaryFile {
 public:
  virtual ~TemporaryFile() = default;
  // Never replaces a file: AlreadyExists if `name` is taken. After an error the file is still a
  // temporary one, and another name may be tried.
  [[nodiscard]] virtual absl::Status RenameTo(const std::string& name) = 0;
  // The bytes survive a power cut from here on, where the system and the disk keep their word.
  [[nodiscard]] virtual absl::Status Sync() const = 0;
};

// A directory that is held open: all functions work in the same place, even if the directory is
// moved. Names have no slash. An error says what was tried, the path and the system's reason. Used
// by one thread at a time.
class ProfileDirectory {
 public:
  virtual ~ProfileDirectory() = default;
  ProfileDirectory(const ProfileDirectory&) = delete;
  ProfileDirectory& operator=(const ProfileDirectory&) = delete;

  // True if what is held open has not been removed. False where the system holds no directory
  // without keeping others from removing it.
  [[nodiscard]] virtual bool IsThere() const { return false; }

  // The directory `name` in it. Creates it first if it is missing, for those who may use this one,
  // where the system has such a mode.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<ProfileDirectory>> OpenFolder(
      const std::string& name) const = 0;

  // Creates a file with these bytes, for this user alone. AlreadyExists if `name` is taken. Leaves
  // nothing behind if it fails, or if memory runs out. The result must not outlive the directory.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<TemporaryFile>> Write(
      const std::string& name, std::string_view bytes) const = 0;
  // The file's bytes. NotFound if there is none, OutOfRange if it has more than `max_bytes`.
  [[nodiscard]] virtual absl::StatusOr<std::string> Read(const std::string& name,
                                                         std::uint64_t max_bytes) const = 0;
  // Never replaces a file: AlreadyExists if `to` is taken.
  [[nodiscard]] virtual absl::Status Rename(const std::string& from,
                                            const std::string& to) const = 0;
  // The names in the directory survive a power cut from here on, like TemporaryFile::Sync.
  [[nodiscard]] virtual absl::Status Sync() const = 0;
  // True if this object has the directory for itself from here on. False if another object has it,
  // of any process, or if the system cannot lock. The lock ends with this object or with the
  // process, however the process ends. A fork's child has no lock.
  [[nodiscard]] virtual bool TryLock() = 0;
  // False if the file could not be removed.
  [[nodiscard]] virtual bool Remove(const std::string& name) const = 0;
  // Reads the first `max_entries` entries, and returns the files whose name `is_wanted`. Empty if
  // the directory cannot be read.
  [[nodiscard]] virtual std::vector<DirectoryFile> List(
      std::size_t max_entries, const std::function<bool(std::string_view)>& is_wanted) const = 0;

  [[nodiscard]] std::string PathOf(const std::string& name) const { return path_ + "/" + name; }

 protected:
  explicit ProfileDirectory(std::string path) : path_(std::move(path)) {}
  [[nodiscard]] const std::string& path() const { return path_; }

 private:
  const std::string path_;
};

// The system's directories. Paths and names are UTF-8, or the system's bytes where its paths are
// bytes. Control plane, from any thread.
class ProfileDirectories {
 public:
  // The path from the root, in its shortest form, so that a later change of the working directory
  // does not change its meaning. Returns `path` where the working directory is not known. Where the
  // system's paths are not bytes, bytes that are not valid UTF-8 become U+FFFD.
  [[nodiscard]] virtual std::string AbsolutePath(const std::string& path) const = 0;
  // Creates missing directories first, for this user alone where the system has such a mode.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<ProfileDirectory>> Open(
      const std::string& path) const = 0;
  // NotFound if there is no such directory.
  [[nodiscard]] virtual absl::StatusOr<std::unique_ptr<ProfileDirectory>> OpenExisting(
      const std::string& path) const = 0;

 protected:
  ~ProfileDirectories() = default;
};

// A system without directories.
class NoProfileDirectories final : public ProfileDirectories {
 public:
  [[nodiscard]] std::string AbsolutePath(const std::string& path) const override { return path; }
  [[nodiscard]] absl::StatusOr<std::unique_ptr<ProfileDirectory>> Open(
      const std::string& path) const override {
    return absl::UnimplementedError("cannot open directory " + path +
                                    ": this system has no directories");
  }
  [[nodiscard]] absl::StatusOr<std::unique_ptr<ProfileDirectory>> OpenExisting(
      const std::string& path) const override {
    return Open(path);
  }
};

}  // namespace strobe
