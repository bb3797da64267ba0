#include "images.h"

#include <windows.h>
// These need windows.h before them.
#include <psapi.h>
#include <winternl.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <optional>
#include <string_view>

#include "library_function.h"
#include "strobe/base/page.h"
#include "strobe/ring/spsc_ring.h"
#include "strobe/symbolize/pe_image.h"
#include "utf8.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kMaxImages = 4096;
constexpr int kMaxAttempts = 10;               // to read a list that changes meanwhile
constexpr std::size_t kMaxPathLength = 32768;  // Windows' own limit

std::atomic<std::uint64_t> image_changes{1};

// The loader's notifications (documented under LdrRegisterDllNotification, in no header).
struct NotificationData {
  ULONG flags;
  const UNICODE_STRING* path;
  const UNICODE_STRING* name;
  void* base;
  ULONG image_bytes;
};
using Notification = void(CALLBACK*)(ULONG reason, const NotificationData* data, void* context);
using RegisterNotification = LONG(NTAPI*)(ULONG flags, Notification notification, void* context,
                                          void** cookie);
constexpr ULONG kLoaded = 1;

// The loader's notifications since the last Take. The loader sends one at a time, under its lock.
class Announcements {
 public:
  // For the notifications between two reads. If they do not fit, all images are listed again.
  static constexpr std::size_t kRingBytes = std::size_t{1} << 15;

  Announcements() { ring_.Reset(memory_); }

  // Called by the loader, for an image that was loaded, with the path of its file; or unloaded,
  // with an empty path. Never waits, and allocates nothing.
  void Add(Address base, std::wstring_view path) {
    const std::size_t path_bytes = path.size() * sizeof(wchar_t);
    std::byte* const record = ring_.Reserve(sizeof(base) + path_bytes);
    if (record == nullptr) {
      has_lost_.store(true, std::memory_order_release);
      return;
    }
    std::memcpy(record, &base, sizeof(base));
    std::memcpy(record + sizeof(base), path.data(), path_bytes);
    ring_.Commit(sizeof(base) + path_bytes);
  }

  // Removes all notifications, and returns the last one of each base. One caller at a time, as for
  // HasLost.
  std::map<Address, std::wstring> Take() {
    std::map<Address, std::wstring> last;
    for (std::span<const std::byte> record = ring_.Peek(); !record.empty(); record = ring_.Peek()) {
      Address base = 0;
      std::memcpy(&base, record.data(), sizeof(base));
      std::wstring& path = last[base];
      path.resize((record.size() - sizeof(base)) / sizeof(wchar_t));
      std::memcpy(path.data(), record.data() + sizeof(base), path.size() * sizeof(wchar_t));
      ring_.Pop();
    }
    return last;
  }

  // True if a notification found no room since the last call. Then the others are removed, because
  // they are useless without it.
  bool HasLost() {
    if (!has_lost_.exchange(false, std::memory_order_acquire)) return false;
    Take();
    return true;
  }

 private:
  alignas(SpscRing::kStorageAlignment) std::array<std::byte, kRingBytes> memory_;
  SpscRing ring_;
  std::atomic<bool> has_lost_{false};
};
Announcements& GlobalAnnouncements() {
  static auto* const announcements = new Announcements;
  return *announcements;
}

// An image that is being unloaded stays in the loader's list for a moment, but its code does not
// run any more.
void CALLBACK OnNotification(ULONG reason, const NotificationData* data, void* announcements) {
  const std::wstring_view path(data->path->Buffer, data->path->Length / sizeof(wchar_t));
  static_cast<Announcements*>(announcements)
      ->Add(reinterpret_cast<Address>(data->base), reason == kLoaded ? path : std::wstring_view());
  image_changes.fetch_add(1, std::memory_order_acq_rel);
}

// Never unregistered: the library is part of the program.
bool RegisterOnce() {
  static const bool is_registered = [] {
    void* cookie = nullptr;
    const auto function = FindFunction<RegisterNotification>(GetModuleHandleW(L"ntdll.dll"),
                                                             "LdrRegisterDllNotification");
    return function != nullptr &&
           function(0, &OnNotification, &GlobalAnnouncements(), &cookie) == 0;
  }();
  return is_registered;
}

// A handle of this process as of another one. With the handle of GetCurrentProcess, Wine reads the
// loader's list in place: without the loader's lock, so that it faults when another thread changes
// the list; or with that lock, so that it waits.
HANDLE OwnProcess() {
  static const HANDLE process =
      OpenProcess(PROCESS_QUERY_INFORMATION | PROCESS_VM_READ, FALSE, GetCurrentProcessId());
  return process;
}

struct Image {
  Address base = 0;
  std::vector<Module> modules;  // its code; empty if it could not be read
};

Image OpenImage(Address base, const std::string& path) {
  const auto read = [base](std::uint64_t position, std::span<std::uint8_t> bytes) {
    return ReadOwnMemory(base + position, bytes);
  };
  const std::optional<PeImage> image = PeImage::Open(read, PeImage::Layout::kLoaded);
  return {base, image ? image->ModulesAt(base, path) : std::vector<Module>()};
}

// All images, the program's first. Empty if the list changed during each attempt to read it.
std::optional<std::vector<Image>> ListImages() {
  std::array<HMODULE, kMaxImages> list{};
  DWORD bytes = 0;
  for (int attempt = 1; K32EnumProcessModules(OwnProcess(), list.data(), sizeof(list), &bytes) == 0;
       ++attempt) {
    if (attempt < kMaxAttempts) continue;
    image_changes.fetch_add(1, std::memory_order_acq_rel);  // so that the collector reads again
    return std::nullopt;
  }
  std::vector<Image> images;
  const std::size_t count = std::min<std::size_t>(bytes / sizeof(list[0]), list.size());
  for (std::size_t i = 0; i < count; ++i)
    images.push_back(OpenImage(reinterpret_cast<Address>(list[i]), PathOfImage(list[i])));
  return images;
}

std::vector<Module> ModulesOf(const std::vector<Image>& images) {
  std::vector<Module> modules;
  for (const Image& image : images)
    modules.insert(modules.end(), image.modules.begin(), image.modules.end());
  return modules;
}

// The images that were listed, changed by the loader's notifications since. This saves the hundreds
// of reads that a list of all images takes.
class KnownImages {
 public:
  std::vector<Module> Poll() {
    // A lost notification may be of an image that is being unloaded and still in the list. So the
    // images are listed a second time.
    if (GlobalAnnouncements().HasLost()) listings_ = 2;
    // The list may or may not have the changes of later notifications. In both cases the last
    // notification of a base is right.
    if (listings_ > 0) ListAgain();
    for (const auto& [base, path] : GlobalAnnouncements().Take()) {
      Forget(base, base);
      if (path.empty() || images_.size() >= kMaxImages) continue;
      Image image = OpenImage(base, Utf8FromWide(path));
      if (image.modules.empty()) continue;
      Forget(image.modules.front().start, image.modules.back().limit);
      images_.push_back(std::move(image));
    }
    return ModulesOf(images_);
  }

  // Held by the caller of Look.
  std::mutex mutex;

 private:
  void ListAgain() {
    if (std::optional<std::vector<Image>> listed = ListImages()) {
      images_ = *std::move(listed);
      --listings_;
    }
    // So that the collector reads again. Until then the known images are used.
    if (listings_ > 0) image_changes.fetch_add(1, std::memory_order_acq_rel);
  }

  // Removes the image that begins at `start`, and all images with code in the range.
  void Forget(Address start, Address limit) {
    std::erase_if(images_, [&](const Image& image) {
      return image.base == start ||
             std::any_of(image.modules.begin(), image.modules.end(), [&](const Module& module) {
               return module.start < limit && start < module.limit;
             });
    });
  }

  std::vector<Image> images_;
  int listings_ = 1;  // how many times the images are still to be listed
};

}  // namespace

std::string PathOfImage(void* base) {
  std::vector<wchar_t> path(MAX_PATH);
  while (true) {
    const DWORD length = K32GetModuleFileNameExW(OwnProcess(), static_cast<HMODULE>(base),
                                                 path.data(), static_cast<DWORD>(path.size()));
    if (length < path.size() || path.size() >= kMaxPathLength)
      return Utf8FromWide(std::wstring_view(path.data(), length));
    path.resize(path.size() * 2);
  }
}

std::uint64_t ImageVersion() {
  // Without notifications, each call reports a change.
  if (!RegisterOnce()) image_changes.fetch_add(1, std::memory_order_acq_rel);
  return image_changes.load(std::memory_order_acquire);
}

std::vector<Module> LoadedModules() {
  static auto* const known = new KnownImages;
  if (RegisterOnce()) {
    // Another session's thread may hold the mutex, or a thread that the process's end has killed.
    const std::unique_lock lock(known->mutex, std::try_to_lock);
    if (lock.owns_lock()) return known->Poll();
  }
  return ModulesOf(ListImages().value_or(std::vector<Image>()));
}

std::size_t ReadOwnMemory(Address address, std::span<std::uint8_t> bytes) noexcept {
  const auto read = [](Address from, std::span<std::uint8_t> to) {
    SIZE_T got = 0;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): only the kernel's
    const BOOL is_read = ReadProcessMemory(GetCurrentProcess(), reinterpret_cast<const void*>(from),
                                           to.data(), to.size(), &got);
    return is_read != 0 ? to.size() : std::size_t{0};
  };
  if (read(address, bytes) == bytes.size()) return bytes.size();
  std::size_t done = 0;
  while (done < bytes.size()) {
    const Address at = address + done;
    const std::size_t in_page =
        std::min<std::size_t>(kPageBytes - at % kPageBytes, bytes.size() - done);
    if (read(at, bytes.subspan(done, in_page)) == 0) break;
    done += in_page;
  }
  return done;
}

}  // namespace strobe::internal
