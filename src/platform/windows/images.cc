#include "images.h"

#include <windows.h>
// After it.
#include <psapi.h>

#include <algorithm>
#include <array>
#include <atomic>

#include "library_function.h"
#include "strobe/symbolize/pe_image.h"
#include "utf8.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kMaxImages = 4096;
constexpr int kMaxAttempts = 10;               // to read a list that changes meanwhile
constexpr std::size_t kMaxPathLength = 32768;  // Windows' own limit
constexpr Address kPageBytes = 4096;

std::atomic<std::uint64_t> image_changes{1};

// The loader's notifications (documented under LdrRegisterDllNotification, in no header).
using Notification = void(CALLBACK*)(ULONG reason, const void* data, void* context);
using RegisterNotification = LONG(NTAPI*)(ULONG flags, Notification notification, void* context, void** cookie);

// An image that is announced as going stays in the loader's list for a moment, which does no harm: nothing runs there any more.
void CALLBACK CountImageChange(ULONG /*reason*/, const void* /*data*/, void* /*context*/) {
  image_changes.fetch_add(1, std::memory_order_acq_rel);
}

// Never unregistered: the library is part of the program.
bool RegisterOnce() {
  static const bool is_registered = [] {
    void* cookie = nullptr;
    const auto function = FindFunction<RegisterNotification>(GetModuleHandleW(L"ntdll.dll"), "LdrRegisterDllNotification");
    return function != nullptr && function(0, &CountImageChange, nullptr, &cookie) == 0;
  }();
  return is_registered;
}

// This process as if it was another one. By the handle that GetCurrentProcess gives, Wine follows the loader's list where it lies, without
// its lock, and faults where another thread changes it; or waits for that lock.
HANDLE OwnProcess() {
  static const HANDLE process = OpenProcess(PROCESS_QUERY_INFORMATION | PROCESS_VM_READ, FALSE, GetCurrentProcessId());
  return process;
}

}  // namespace

std::string PathOfImage(void* base) {
  std::vector<wchar_t> path(MAX_PATH);
  while (true) {
    const DWORD length = K32GetModuleFileNameExW(OwnProcess(), static_cast<HMODULE>(base), path.data(), static_cast<DWORD>(path.size()));
    if (length < path.size() || path.size() >= kMaxPathLength) return Utf8FromWide(std::wstring_view(path.data(), length));
    path.resize(path.size() * 2);
  }
}

std::uint64_t ImageVersion() {
  // Who is told nothing takes it that something has changed.
  if (!RegisterOnce()) image_changes.fetch_add(1, std::memory_order_acq_rel);
  return image_changes.load(std::memory_order_acquire);
}

std::vector<Module> LoadedModules() {
  std::array<HMODULE, kMaxImages> images{};
  DWORD bytes = 0;
  std::vector<Module> modules;
  for (int attempt = 1; K32EnumProcessModules(OwnProcess(), images.data(), sizeof(images), &bytes) == 0; ++attempt) {
    if (attempt < kMaxAttempts) continue;
    image_changes.fetch_add(1, std::memory_order_acq_rel);  // so that somebody looks again
    return modules;
  }
  const std::size_t count = std::min<std::size_t>(bytes / sizeof(images[0]), images.size());
  for (std::size_t i = 0; i < count; ++i) {
    const auto base = reinterpret_cast<Address>(images[i]);
    // Its headers lie in its first page.
    std::array<std::uint8_t, kPageBytes> first{};
    const std::size_t first_bytes = ReadOwnMemory(base, first);
    const auto read = [&](std::uint64_t position, std::span<std::uint8_t> out) {
      if (position > first_bytes || out.size() > first_bytes - position) return ReadOwnMemory(base + position, out);
      std::copy_n(first.begin() + static_cast<std::ptrdiff_t>(position), out.size(), out.begin());
      return out.size();
    };
    const std::optional<PeImage> image = PeImage::Open(read, PeImage::Layout::kLoaded);
    if (!image) continue;
    for (Module& module : image->ModulesAt(base, PathOfImage(images[i]))) modules.push_back(std::move(module));
  }
  return modules;
}

std::size_t ReadOwnMemory(Address address, std::span<std::uint8_t> bytes) noexcept {
  const auto read = [](Address from, std::span<std::uint8_t> to) {
    SIZE_T got = 0;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): only the kernel's
    const BOOL is_read = ReadProcessMemory(GetCurrentProcess(), reinterpret_cast<const void*>(from), to.data(), to.size(), &got);
    return is_read != 0 ? to.size() : std::size_t{0};
  };
  if (read(address, bytes) == bytes.size()) return bytes.size();
  std::size_t done = 0;
  while (done < bytes.size()) {
    const Address at = address + done;
    const std::size_t in_page = std::min<std::size_t>(kPageBytes - at % kPageBytes, bytes.size() - done);
    if (read(at, bytes.subspan(done, in_page)) == 0) break;
    done += in_page;
  }
  return done;
}

}  // namespace strobe::internal
