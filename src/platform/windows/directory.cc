#include <windows.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <utility>

#include "absl/strings/str_cat.h"
#include "strobe/export/profile_directories.h"
#include "strobe/platform/windows/windows_platform.h"
#include "utf8.h"

namespace strobe {
namespace {

using internal::Utf8FromWide;
using internal::WideFromUtf8;

// FILETIME counts 100 ns from the year 1601.
constexpr std::int64_t kFileTimeNs = 100;
constexpr std::int64_t kUnixEpochFileTime = 116'444'736'000'000'000;

absl::Status ErrorStatus(const std::error_code& error, const char* doing, const std::string& path) {
  const std::error_condition condition = error.default_error_condition();
  const bool is_errno = condition.category() == std::generic_category();
  return {is_errno ? absl::ErrnoToStatusCode(condition.value()) : absl::StatusCode::kUnknown,
          absl::StrCat(doing, " ", path, ": ", error.message(), " [", error.value(), "]")};
}
absl::Status SystemError(DWORD error, const char* doing, const std::string& path) {
  return ErrorStatus({static_cast<int>(error), std::system_category()}, doing, path);
}

class FileHandle {
 public:
  explicit FileHandle(HANDLE handle) : handle_(handle) {}
  FileHandle(const FileHandle&) = delete;
  FileHandle& operator=(const FileHandle&) = delete;
  ~FileHandle() { (void)Close(); }

  [[nodiscard]] HANDLE get() const { return handle_; }
  [[nodiscard]] bool is_open() const { return handle_ != INVALID_HANDLE_VALUE; }
  void Take(FileHandle& other) {
    (void)Close();
    handle_ = other.Release();
  }
  HANDLE Release() { return std::exchange(handle_, INVALID_HANDLE_VALUE); }
  // 0 or the system's error.
  DWORD Close() { return is_open() && CloseHandle(Release()) == 0 ? GetLastError() : 0; }

 private:
  HANDLE handle_;
};

// 0 or the system's error.
DWORD WriteAll(HANDLE file, std::string_view bytes) {
  constexpr std::size_t kMaxPieceBytes = std::size_t{1} << 30;
  while (!bytes.empty()) {
    DWORD written = 0;
    if (WriteFile(file, bytes.data(), static_cast<DWORD>(std::min(bytes.size(), kMaxPieceBytes)),
                  &written, nullptr) == 0) {
      return GetLastError();
    }
    bytes.remove_prefix(written);
  }
  return 0;
}

struct SearchCloser {
  void operator()(HANDLE search) const { FindClose(search); }
};

class WindowsTemporaryFile final : public TemporaryFile {
 public:
  WindowsTemporaryFile(const ProfileDirectory& directory, const std::string& name)
      : directory_(directory), path_(directory.PathOf(name)), wide_path_(WideFromUtf8(path_)) {}
  ~WindowsTemporaryFile() override {
    if (exists_) DeleteFileW(wide_path_.c_str());
  }
  WindowsTemporaryFile(const WindowsTemporaryFile&) = delete;
  WindowsTemporaryFile& operator=(const WindowsTemporaryFile&) = delete;

  [[nodiscard]] absl::Status Write(std::string_view bytes);
  [[nodiscard]] absl::Status RenameTo(const std::string& name) override;
  [[nodiscard]] absl::Status Sync() const override;

 private:
  const ProfileDirectory& directory_;
  const std::string path_;
  const std::wstring wide_path_;  // made early: the destructor needs no memory
  bool exists_ = false;
};

absl::Status WindowsTemporaryFile::Write(std::string_view bytes) {
  FileHandle file(CreateFileW(wide_path_.c_str(), GENERIC_WRITE, 0, nullptr, CREATE_NEW,
                              FILE_ATTRIBUTE_NORMAL, nullptr));
  if (!file.is_open()) return SystemError(GetLastError(), "cannot create", path_);
  exists_ = true;
  if (const DWORD error = WriteAll(file.get(), bytes); error != 0)
    return SystemError(error, "cannot write", path_);
  if (const DWORD error = file.Close(); error != 0)
    return SystemError(error, "cannot close", path_);
  return absl::OkStatus();
}

absl::Status WindowsTemporaryFile::RenameTo(const std::string& name) {
  const std::string path = directory_.PathOf(name);
  // Without MOVEFILE_REPLACE_EXISTING.
  if (MoveFileExW(wide_path_.c_str(), WideFromUtf8(path).c_str(), 0) == 0)
    return SystemError(GetLastError(), "cannot rename a temporary file to", path);
  exists_ = false;
  return absl::OkStatus();
}

absl::Status WindowsTemporaryFile::Sync() const {
  const FileHandle file(CreateFileW(wide_path_.c_str(), GENERIC_WRITE, 0, nullptr, OPEN_EXISTING,
                                    FILE_ATTRIBUTE_NORMAL, nullptr));
  if (!file.is_open() || FlushFileBuffers(file.get()) == 0)
    return SystemError(GetLastError(), "cannot sync", path_);
  return absl::OkStatus();
}

class WindowsDirectory final : public ProfileDirectory {
 public:
  WindowsDirectory(const std::string& path, FileHandle& handle)
      : ProfileDirectory(path), handle_(handle.Release()) {}

  [[nodiscard]] absl::StatusOr<std::unique_ptr<ProfileDirectory>> OpenFolder(
      const std::string& name) const override;
  [[nodiscard]] absl::StatusOr<std::unique_ptr<TemporaryFile>> Write(
      const std::string& name, std::string_view bytes) const override;
  [[nodiscard]] bool Remove(const std::string& name) const override {
    return DeleteFileW(WideFromUtf8(PathOf(name)).c_str()) != 0;
  }
  [[nodiscard]] absl::StatusOr<std::string> Read(const std::string& name,
                                                 std::uint64_t max_bytes) const override;
  [[nodiscard]] absl::Status Rename(const std::string& from, const std::string& to) const override {
    if (MoveFileExW(WideFromUtf8(PathOf(from)).c_str(), WideFromUtf8(PathOf(to)).c_str(), 0) != 0)
      return absl::OkStatus();
    return SystemError(GetLastError(), "cannot rename a file to", PathOf(to));
  }
  // NTFS writes its journal of names by itself.
  [[nodiscard]] absl::Status Sync() const override { return absl::OkStatus(); }
  [[nodiscard]] bool TryLock() override;
  [[nodiscard]] std::vector<DirectoryFile> List(
      std::size_t max_entries,
      const std::function<bool(std::string_view)>& is_wanted) const override;

 private:
  const FileHandle handle_;
  FileHandle lock_{INVALID_HANDLE_VALUE};
};

// A file that shares nothing, and that the system removes when its handle is closed.
bool WindowsDirectory::TryLock() {
  if (lock_.is_open()) return true;
  FileHandle lock(CreateFileW(WideFromUtf8(PathOf(".lock")).c_str(), GENERIC_WRITE, 0, nullptr,
                              OPEN_ALWAYS, FILE_FLAG_DELETE_ON_CLOSE, nullptr));
  lock_.Take(lock);
  return lock_.is_open();
}

absl::StatusOr<std::string> WindowsDirectory::Read(const std::string& name,
                                                   std::uint64_t max_bytes) const {
  const FileHandle file(CreateFileW(WideFromUtf8(PathOf(name)).c_str(), GENERIC_READ,
                                    FILE_SHARE_READ, nullptr, OPEN_EXISTING, 0, nullptr));
  LARGE_INTEGER size;
  if (!file.is_open() || GetFileSizeEx(file.get(), &size) == 0)
    return SystemError(GetLastError(), "cannot open", PathOf(name));
  constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 30;  // of one ReadFile
  if (static_cast<std::uint64_t>(size.QuadPart) > std::min(max_bytes, kMaxBytes))
    return absl::OutOfRangeError(absl::StrCat("cannot read ", PathOf(name), ": File too large"));
  std::string bytes(static_cast<std::size_t>(size.QuadPart), '\0');
  DWORD got = 0;
  if (ReadFile(file.get(), bytes.data(), static_cast<DWORD>(bytes.size()), &got, nullptr) == 0)
    return SystemError(GetLastError(), "cannot read", PathOf(name));
  bytes.resize(got);
  return bytes;
}

absl::StatusOr<std::unique_ptr<TemporaryFile>> WindowsDirectory::Write(
    const std::string& name, std::string_view bytes) const {
  auto file = std::make_unique<WindowsTemporaryFile>(*this, name);
  if (absl::Status status = file->Write(bytes); !status.ok()) return status;
  return file;
}

std::vector<DirectoryFile> WindowsDirectory::List(
    std::size_t max_entries, const std::function<bool(std::string_view)>& is_wanted) const {
  std::vector<DirectoryFile> files;
  WIN32_FIND_DATAW entry;
  const HANDLE search = FindFirstFileW(WideFromUtf8(PathOf("*")).c_str(), &entry);
  if (search == INVALID_HANDLE_VALUE) return files;
  const std::unique_ptr<void, SearchCloser> closer(search);
  std::size_t count = 0;
  do {
    constexpr DWORD kIrregular =
        FILE_ATTRIBUTE_DIRECTORY | FILE_ATTRIBUTE_REPARSE_POINT | FILE_ATTRIBUTE_DEVICE;
    std::string name = Utf8FromWide(entry.cFileName);
    if ((entry.dwFileAttributes & kIrregular) != 0 || !is_wanted(name)) continue;
    const auto modified =
        static_cast<std::int64_t>(std::uint64_t{entry.ftLastWriteTime.dwHighDateTime} << 32 |
                                  entry.ftLastWriteTime.dwLowDateTime);
    files.push_back({std::move(name), std::uint64_t{entry.nFileSizeHigh} << 32 | entry.nFileSizeLow,
                     (modified - kUnixEpochFileTime) * kFileTimeNs});
  } while (++count < max_entries && FindNextFileW(search, &entry) != 0);
  return files;
}

class WindowsDirectories final : public ProfileDirectories {
 public:
  [[nodiscard]] std::string AbsolutePath(const std::string& path) const override;
  [[nodiscard]] absl::StatusOr<std::unique_ptr<ProfileDirectory>> Open(
      const std::string& path) const override;
  [[nodiscard]] absl::StatusOr<std::unique_ptr<ProfileDirectory>> OpenExisting(
      const std::string& path) const override;
};

std::string WindowsDirectories::AbsolutePath(const std::string& path) const {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(WideFromUtf8(path), error);
  return Utf8FromWide((error ? std::filesystem::path(WideFromUtf8(path)) : absolute)
                          .lexically_normal()
                          .generic_wstring());
}

absl::StatusOr<std::unique_ptr<ProfileDirectory>> WindowsDirectories::Open(
    const std::string& path) const {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(WideFromUtf8(path)), error);
  // The value may be an errno: the C++ library finds some errors itself.
  if (error) return ErrorStatus(error, "cannot create directory", path);
  return OpenExisting(path);
}

absl::StatusOr<std::unique_ptr<ProfileDirectory>> WindowsDirectories::OpenExisting(
    const std::string& path) const {
  // Deletion is not shared, so the directory can be neither moved nor removed while it is open.
  FileHandle handle(CreateFileW(WideFromUtf8(path).c_str(), FILE_LIST_DIRECTORY,
                                FILE_SHARE_READ | FILE_SHARE_WRITE, nullptr, OPEN_EXISTING,
                                FILE_FLAG_BACKUP_SEMANTICS, nullptr));
  BY_HANDLE_FILE_INFORMATION information;
  if (!handle.is_open() || GetFileInformationByHandle(handle.get(), &information) == 0)
    return SystemError(GetLastError(), "cannot open directory", path);
  if ((information.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) == 0)
    return SystemError(ERROR_DIRECTORY, "cannot open directory", path);
  return std::make_unique<WindowsDirectory>(path, handle);
}

constexpr WindowsDirectories kProfileDirectories;

// While this directory is open, its path is where it was.
absl::StatusOr<std::unique_ptr<ProfileDirectory>> WindowsDirectory::OpenFolder(
    const std::string& name) const {
  return kProfileDirectories.Open(PathOf(name));
}

}  // namespace

const ProfileDirectories& WindowsPlatform::Directories() { return kProfileDirectories; }

}  // namespace strobe
