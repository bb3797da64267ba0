#include <windows.h>

#include <algorithm>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "strobe/platform/windows/windows_platform.h"
#include "strobe/symbolize/symbol_files.h"
#include "system_symbols.h"
#include "utf8.h"

namespace strobe {
namespace {

class WindowsFile final : public FileSource {
 public:
  WindowsFile(HANDLE handle, std::uint64_t size, std::string identity)
      : handle_(handle), size_(size), identity_(std::move(identity)) {}
  ~WindowsFile() override { CloseHandle(handle_); }
  WindowsFile(const WindowsFile&) = delete;
  WindowsFile& operator=(const WindowsFile&) = delete;

  [[nodiscard]] bool ReadAt(std::uint64_t offset, std::span<std::byte> out) const override;
  [[nodiscard]] std::uint64_t size() const override { return size_; }
  [[nodiscard]] const std::string& identity() const override { return identity_; }

 private:
  HANDLE handle_;
  std::uint64_t size_;
  std::string identity_;
};

// Windows has no vdso: the entries to its kernel are in ntdll.dll, which is a file.
class WindowsFiles final : public SymbolFiles {
 public:
  [[nodiscard]] std::unique_ptr<FileSource> Open(const std::string& path) const override;
  [[nodiscard]] bool VisitSymbols(const std::string& path,
                                  const SymbolVisitor& visit) const override {
    return internal::VisitSystemSymbols(path, visit);
  }
  [[nodiscard]] bool VisitLines(const std::string& path, std::span<const std::uint64_t> addresses,
                                const LineVisitor& visit) const override {
    return internal::VisitSystemLines(path, addresses, visit);
  }
};

std::unique_ptr<FileSource> WindowsFiles::Open(const std::string& path) const {
  const HANDLE handle = CreateFileW(internal::WideFromUtf8(path).c_str(), GENERIC_READ,
                                    FILE_SHARE_READ | FILE_SHARE_WRITE | FILE_SHARE_DELETE, nullptr,
                                    OPEN_EXISTING, FILE_ATTRIBUTE_NORMAL, nullptr);
  if (handle == INVALID_HANDLE_VALUE) return nullptr;
  BY_HANDLE_FILE_INFORMATION information;
  if (GetFileType(handle) != FILE_TYPE_DISK ||
      GetFileInformationByHandle(handle, &information) == 0) {
    CloseHandle(handle);
    return nullptr;
  }
  const std::uint64_t size =
      std::uint64_t{information.nFileSizeHigh} << 32 | information.nFileSizeLow;
  std::string identity = absl::StrCat(information.dwVolumeSerialNumber, ":",
                                      information.nFileIndexHigh, ".", information.nFileIndexLow,
                                      ":", size, ":", information.ftLastWriteTime.dwHighDateTime,
                                      ".", information.ftLastWriteTime.dwLowDateTime);
  return std::make_unique<WindowsFile>(handle, size, std::move(identity));
}

bool WindowsFile::ReadAt(std::uint64_t offset, std::span<std::byte> out) const {
  constexpr std::size_t kMaxPieceBytes = std::size_t{1} << 30;
  if (offset > size_ || out.size() > size_ - offset) return false;
  while (!out.empty()) {
    OVERLAPPED position = {};
    position.Offset = static_cast<DWORD>(offset);
    position.OffsetHigh = static_cast<DWORD>(offset >> 32);
    DWORD count = 0;
    const auto piece_bytes = static_cast<DWORD>(std::min(out.size(), kMaxPieceBytes));
    if (ReadFile(handle_, out.data(), piece_bytes, &count, &position) == 0 || count == 0)
      return false;
    offset += count;
    out = out.subspan(count);
  }
  return true;
}

constexpr WindowsFiles kSymbolFiles;

}  // namespace

const SymbolFiles& WindowsPlatform::Files() { return kSymbolFiles; }

}  // namespace strobe
