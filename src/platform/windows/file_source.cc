#include <windows.h>

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "symbolize/byte_source.h"
#include "utf8.h"

namespace strobe::internal {
namespace {

HANDLE AsHandle(std::intptr_t handle) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  return reinterpret_cast<HANDLE>(handle);
}

}  // namespace

std::unique_ptr<FileSource> FileSource::Open(const std::string& path) {
  const HANDLE handle = CreateFileW(WideFromUtf8(path).c_str(), GENERIC_READ,
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
  return std::unique_ptr<FileSource>(
      new FileSource(reinterpret_cast<std::intptr_t>(handle), size, std::move(identity)));
}

FileSource::~FileSource() { CloseHandle(AsHandle(handle_)); }

bool FileSource::ReadAt(std::uint64_t offset, std::span<std::byte> out) const {
  constexpr std::size_t kMaxPieceBytes = std::size_t{1} << 30;
  if (offset > size_ || out.size() > size_ - offset) return false;
  while (!out.empty()) {
    OVERLAPPED position = {};
    position.Offset = static_cast<DWORD>(offset);
    position.OffsetHigh = static_cast<DWORD>(offset >> 32);
    DWORD count = 0;
    const auto piece_bytes = static_cast<DWORD>(std::min(out.size(), kMaxPieceBytes));
    if (ReadFile(AsHandle(handle_), out.data(), piece_bytes, &count, &position) == 0 || count == 0)
      return false;
    offset += count;
    out = out.subspan(count);
  }
  return true;
}

// Windows has no such image: what its kernel offers is in ntdll.dll, which is a file.
std::span<const std::byte> OwnVdso(std::uint64_t /*load_bias*/, std::uint64_t /*start*/,
                                   std::uint64_t /*limit*/) {
  return {};
}

}  // namespace strobe::internal
