// ManualDirectories: directories in memory. A test can fill their disk and make operations fail.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/export/profile_directories.h"

namespace strobe::testing {

// Thread-safe. Must outlive the open directories.
class ManualDirectories final : public ProfileDirectories {
 public:
  struct File {
    std::string bytes;
    std::int64_t modified_ns = 0;  // Unix time; a test may set it
  };
  using Files = std::map<std::string, File>;  // by name

  struct State {
    // Set by a test.
    std::uint64_t room_bytes = std::numeric_limits<std::uint64_t>::max();  // left on the disk
    absl::Status write_status;            // of every Write; OK: writes work
    absl::Status rename_status;           // of every RenameTo
    absl::Status sync_status;             // of every Sync
    std::function<void()> before_rename;  // runs in every RenameTo: may throw, or call Vanish

    // Read by a test: the directories by path. An open directory that is no longer here has failed.
    std::map<std::string, std::shared_ptr<Files>> directories;
    std::set<std::string> locked;  // the paths of the locked directories; a test may add to it
  };
  // Calls body(state) while no other thread uses it.
  template <class Body>
  auto With(Body&& body) const {
    const std::lock_guard lock(mutex_);
    return body(state_);
  }
  void Reset() {
    With([](State& state) { state = State(); });
  }

  // Removes a directory and its files, even if it is open.
  void Vanish(const std::string& path) {
    With([&](State& state) { state.directories.erase(path); });
  }
  // The names in a directory, in order; none if there is no such directory.
  [[nodiscard]] std::vector<std::string> Names(const std::string& path) const {
    return With([&](State& state) {
      std::vector<std::string> names;
      if (const auto directory = state.directories.find(path);
          directory != state.directories.end()) {
        for (const auto& [name, file] : *directory->second) names.push_back(name);
      }
      return names;
    });
  }
  // The bytes of the file at that path, if there is one.
  [[nodiscard]] std::optional<std::string> Read(const std::string& path) const {
    return With([&](State& state) -> std::optional<std::string> {
      const std::size_t slash = path.rfind('/');
      if (slash == std::string::npos) return std::nullopt;
      const auto directory = state.directories.find(path.substr(0, slash));
      if (directory == state.directories.end()) return std::nullopt;
      const auto file = directory->second->find(path.substr(slash + 1));
      if (file == directory->second->end()) return std::nullopt;
      return file->second.bytes;
    });
  }

  // The working directory is the root.
  [[nodiscard]] std::string AbsolutePath(const std::string& path) const override {
    return path.starts_with('/') ? path : "/" + path;
  }
  // Fails if there is a file of that name.
  [[nodiscard]] absl::StatusOr<std::unique_ptr<ProfileDirectory>> Open(
      const std::string& path) const override {
    for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
      const std::string level = path.substr(0, slash);
      if (Read(level).has_value())
        return absl::FailedPreconditionError("cannot create directory " + level +
                                             ": Not a directory");
      if (slash == std::string::npos) break;
    }
    return With([&](State& state) {
      std::shared_ptr<Files>& files = state.directories[path];
      if (files == nullptr) files = std::make_shared<Files>();
      return std::make_unique<Directory>(path, *this, files);
    });
  }
  [[nodiscard]] absl::StatusOr<std::unique_ptr<ProfileDirectory>> OpenExisting(
      const std::string& path) const override {
    const bool exists = With([&](State& state) { return state.directories.contains(path); });
    if (exists) return Open(path);
    return absl::NotFoundError("cannot open directory " + path + ": No such file or directory");
  }

 private:
  class Directory;

  class Temporary final : public TemporaryFile {
   public:
    Temporary(const Directory& directory, std::string name)
        : directory_(directory), name_(std::move(name)) {}
    ~Temporary() override {
      if (!is_kept_) (void)directory_.Remove(name_);
    }
    Temporary(const Temporary&) = delete;
    Temporary& operator=(const Temporary&) = delete;
    [[nodiscard]] absl::Status RenameTo(const std::string& name) override {
      const absl::Status status = directory_.Rename(name_, name);
      is_kept_ = status.ok();
      return status;
    }
    [[nodiscard]] absl::Status Sync() const override { return directory_.Sync(); }

   private:
    const Directory& directory_;
    const std::string name_;
    bool is_kept_ = false;
  };

  class Directory final : public ProfileDirectory {
   public:
    Directory(const std::string& path, const ManualDirectories& all,
              const std::shared_ptr<Files>& files)
        : ProfileDirectory(path), all_(all), files_(files) {}
    ~Directory() override {
      if (is_locked_) all_.With([&](State& state) { state.locked.erase(path()); });
    }
    Directory(const Directory&) = delete;
    Directory& operator=(const Directory&) = delete;

    [[nodiscard]] bool IsThere() const override {
      return WithFiles(false, [](State&, Files&) { return true; });
    }
    [[nodiscard]] absl::StatusOr<std::unique_ptr<ProfileDirectory>> OpenFolder(
        const std::string& name) const override {
      return all_.Open(PathOf(name));
    }
    [[nodiscard]] absl::StatusOr<std::unique_ptr<TemporaryFile>> Write(
        const std::string& name, std::string_view bytes) const override;
    [[nodiscard]] bool Remove(const std::string& name) const override;
    [[nodiscard]] std::vector<DirectoryFile> List(
        std::size_t max_entries,
        const std::function<bool(std::string_view)>& is_wanted) const override;
    [[nodiscard]] absl::StatusOr<std::string> Read(const std::string& name,
                                                   std::uint64_t max_bytes) const override;
    [[nodiscard]] absl::Status Rename(const std::string& from,
                                      const std::string& to) const override;
    [[nodiscard]] absl::Status Sync() const override {
      return all_.With([](State& state) { return state.sync_status; });
    }
    [[nodiscard]] bool TryLock() override {
      is_locked_ =
          is_locked_ || all_.With([&](State& state) { return state.locked.insert(path()).second; });
      return is_locked_;
    }

   private:
    // Returns body(state, files), or `otherwise` if the directory has vanished.
    template <class Result, class Body>
    Result WithFiles(Result otherwise, Body&& body) const {
      return all_.With([&](State& state) -> Result {
        const std::shared_ptr<Files> files = files_.lock();
        return files == nullptr ? std::move(otherwise) : body(state, *files);
      });
    }
    [[nodiscard]] absl::Status Gone(const char* doing, const std::string& name) const {
      return absl::NotFoundError(doing + PathOf(name) + ": No such file or directory");
    }

    const ManualDirectories& all_;
    const std::weak_ptr<Files> files_;
    bool is_locked_ = false;
  };

  mutable std::mutex mutex_;
  mutable State state_;
};

inline absl::StatusOr<std::unique_ptr<TemporaryFile>> ManualDirectories::Directory::Write(
    const std::string& name, std::string_view bytes) const {
  const absl::Status status =
      WithFiles(Gone("cannot create ", name), [&](State& state, Files& files) -> absl::Status {
        if (!state.write_status.ok())
          return {state.write_status.code(), "cannot create " + PathOf(name) + ": " +
                                                 std::string(state.write_status.message())};
        if (files.contains(name))
          return absl::AlreadyExistsError("cannot create " + PathOf(name) + ": File exists");
        if (bytes.size() > state.room_bytes)
          return absl::ResourceExhaustedError("cannot write " + PathOf(name) +
                                              ": No space left on device");
        state.room_bytes -= bytes.size();
        const std::chrono::nanoseconds now = std::chrono::system_clock::now().time_since_epoch();
        files[name] = {.bytes = std::string(bytes), .modified_ns = now.count()};
        return absl::OkStatus();
      });
  if (!status.ok()) return status;
  return std::make_unique<Temporary>(*this, name);
}

inline bool ManualDirectories::Directory::Remove(const std::string& name) const {
  return WithFiles(false, [&](State& state, Files& files) {
    const auto file = files.find(name);
    if (file == files.end()) return false;
    state.room_bytes += file->second.bytes.size();
    files.erase(file);
    return true;
  });
}

inline std::vector<DirectoryFile> ManualDirectories::Directory::List(
    std::size_t max_entries, const std::function<bool(std::string_view)>& is_wanted) const {
  return WithFiles(std::vector<DirectoryFile>(), [&](State& /*state*/, Files& files) {
    std::vector<DirectoryFile> wanted;
    std::size_t count = 0;
    for (const auto& [name, file] : files) {
      if (count++ == max_entries) break;
      if (is_wanted(name))
        wanted.push_back(
            {.name = name, .bytes = file.bytes.size(), .modified_ns = file.modified_ns});
    }
    return wanted;
  });
}

inline absl::StatusOr<std::string> ManualDirectories::Directory::Read(
    const std::string& name, std::uint64_t max_bytes) const {
  absl::StatusOr<std::string> bytes = Gone("cannot open ", name);
  return WithFiles(bytes, [&](State& /*state*/, Files& files) {
    const auto file = files.find(name);
    if (file == files.end()) return bytes;
    if (file->second.bytes.size() <= max_bytes)
      return absl::StatusOr<std::string>(file->second.bytes);
    return absl::StatusOr<std::string>(
        absl::OutOfRangeError("cannot read " + PathOf(name) + ": File too large"));
  });
}

inline absl::Status ManualDirectories::Directory::Rename(const std::string& from,
                                                         const std::string& to) const {
  // Called without the lock, because the function may take the lock.
  if (const auto before = all_.With([](State& state) { return state.before_rename; })) before();
  const char* const doing = "cannot rename a temporary file to ";
  return WithFiles(Gone(doing, to), [&](State& state, Files& files) -> absl::Status {
    if (!state.rename_status.ok())
      return {state.rename_status.code(),
              doing + PathOf(to) + ": " + std::string(state.rename_status.message())};
    if (!files.contains(from)) return Gone(doing, to);
    if (files.contains(to)) return absl::AlreadyExistsError(doing + PathOf(to) + ": File exists");
    files[to] = std::move(files[from]);
    files.erase(from);
    return absl::OkStatus();
  });
}

}  // namespace strobe::testing
