// MemoryWindows: serves many small reads of slow memory by few large ones. Control plane.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "strobe/base/address.h"
#include "strobe/core/memory_reader.h"

namespace strobe {

// Models MemoryReader. A window is a snapshot: later writes to the memory are not seen. So create a
// MemoryWindows for one task, and do not keep it.
class MemoryWindows {
 public:
  // A window begins at a multiple of its size, as images of Windows do.
  static constexpr std::size_t kWindowBytes = std::size_t{1} << 16;
  // The most windows that are kept. A new window then replaces the oldest.
  static constexpr std::size_t kMaxWindows = 16;

  explicit MemoryWindows(AnyMemoryReader read) : read_(std::move(read)) {}

  std::size_t operator()(Address address, std::span<std::uint8_t> bytes) {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const Address at = address + done;
      const std::size_t offset = at % kWindowBytes;
      const std::vector<std::uint8_t>& window = WindowAt(at - offset);
      const std::span<std::uint8_t> rest = bytes.subspan(done);
      if (offset > window.size()) {
        // The window ends before `at`, and the memory may begin again at any address behind the
        // gap.
        done += read_(at, rest);
        break;
      }
      const std::size_t count = std::min(rest.size(), window.size() - offset);
      std::copy_n(window.begin() + static_cast<std::ptrdiff_t>(offset), count, rest.begin());
      done += count;
      if (offset + count < kWindowBytes) break;  // `bytes` is full, or the memory ends
    }
    has_failed_ |= done == 0 && !bytes.empty();
    return done;
  }

  // True if a read of one byte or more has returned none.
  [[nodiscard]] bool has_failed() const { return has_failed_; }

 private:
  struct Window {
    Address start = 1;  // no window starts at 1
    std::vector<std::uint8_t> bytes;
  };

  const std::vector<std::uint8_t>& WindowAt(Address start) {
    for (const Window& window : windows_) {
      if (window.start == start) return window.bytes;
    }
    Window& window = windows_[next_++ % kMaxWindows];
    window.start = start;
    window.bytes.resize(kWindowBytes);
    window.bytes.resize(read_(start, window.bytes));
    return window.bytes;
  }

  const AnyMemoryReader read_;
  std::array<Window, kMaxWindows> windows_;
  std::size_t next_ = 0;
  bool has_failed_ = false;
};
static_assert(MemoryReader<MemoryWindows>);

}  // namespace strobe
