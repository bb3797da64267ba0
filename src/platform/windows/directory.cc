#include "export/directory.h"

#include <windows.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "utf8.h"

namespace strobe::internal {
namespace {

// FILETIME counts 100 ns from the year 1601.
constexpr std::int64_t kFileTimeNs = 100;
constexpr std::int64_t kUnixEpochFileTime = 116'444'736'000'000'000;

absl::Status SystemError(DWORD error, const char* doing, const std::string& path) {
  const auto value = static_cast<int>(error);
  const std::error_condition condition = std::system_category().default_error_condition(value);
  const bool is_errno = condition.category() == std::generic_category();
  return {is_errno ? absl::ErrnoToStatusCode(condition.value()) : absl::StatusCode::kUnknown,
          absl::StrCat(doing, " ", path, ": ", std::system_category().message(value), " [", value,
                       "]")};
}

HANDLE AsHandle(std::intptr_t handle) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<HANDLE>(handle);
}

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

}  // namespace

std::string Directory::AbsolutePath(const std::string& path) {
  std::error_code error;
  const std::filesystem::path absolute = std::filesystem::absolute(WideFromUtf8(path), error);
  return Utf8FromWide((error ? std::filesystem::path(WideFromUtf8(path)) : absolute)
                          .lexically_normal()
                          .generic_wstring());
}

absl::StatusOr<Directory> Directory::Open(const std::string& path) {
  std::error_code error;
  std::filesystem::create_directories(std::filesystem::path(WideFromUtf8(path)), error);
  if (error) return SystemError(static_cast<DWORD>(error.value()), "cannot create directory", path);
  // It cannot be moved or removed while it is open, because deletion is not shared.
  const HANDLE handle = CreateFileW(WideFromUtf8(path).c_str(), FILE_LIST_DIRECTORY,
                                    FILE_SHARE_READ | FILE_SHARE_WRITE, nullptr, OPEN_EXISTING,
                                    FILE_FLAG_BACKUP_SEMANTICS, nullptr);
  if (handle == INVALID_HANDLE_VALUE)
    return SystemError(GetLastError(), "cannot open directory", path);
  Directory directory(path, reinterpret_cast<std::intptr_t>(handle));
  BY_HANDLE_FILE_INFORMATION information;
  if (GetFileInformationByHandle(handle, &information) == 0)
    return SystemError(GetLastError(), "cannot open directory", path);
  if ((information.dwFileAttributes & FILE_ATTRIBUTE_DIRECTORY) == 0)
    return SystemError(ERROR_DIRECTORY, "cannot open directory", path);
  return directory;
}

Directory::~Directory() {
  if (handle_ != kNone) CloseHandle(AsHandle(handle_));
}

absl::Status Directory::Write(const std::string& name, std::string_view bytes) const {
  const std::wstring path = WideFromUtf8(PathOf(name));
  const HANDLE file = CreateFileW(path.c_str(), GENERIC_WRITE, 0, nullptr, CREATE_NEW,
                                  FILE_ATTRIBUTE_NORMAL, nullptr);
  if (file == INVALID_HANDLE_VALUE)
    return SystemError(GetLastError(), "cannot create", PathOf(name));
  absl::Status status;
  if (const DWORD error = WriteAll(file, bytes); error != 0)
    status = SystemError(error, "cannot write", PathOf(name));
  if (CloseHandle(file) == 0 && status.ok())
    status = SystemError(GetLastError(), "cannot close", PathOf(name));
  if (!status.ok()) DeleteFileW(path.c_str());
  return status;
}

absl::Status Directory::Rename(const std::string& from, const std::string& to) const {
  // Without MOVEFILE_REPLACE_EXISTING.
  if (MoveFileExW(WideFromUtf8(PathOf(from)).c_str(), WideFromUtf8(PathOf(to)).c_str(), 0) != 0)
    return absl::OkStatus();
  return SystemError(GetLastError(), "cannot rename a temporary to", PathOf(to));
}

bool Directory::Remove(const std::string& name) const {
  return DeleteFileW(WideFromUtf8(PathOf(name)).c_str()) != 0;
}

std::vector<DirectoryFile> Directory::List(
    std::size_t max_entries, const std::function<bool(std::string_view)>& is_wanted) const {
  std::vector<DirectoryFile> files;
  WIN32_FIND_DATAW entry;
  const HANDLE search = FindFirstFileW(WideFromUtf8(PathOf("*")).c_str(), &entry);
  if (search == INVALID_HANDLE_VALUE) return files;
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
  FindClose(search);
  return files;
}

}  // namespace strobe::internal
