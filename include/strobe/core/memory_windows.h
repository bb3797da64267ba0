// MemoryWindows: many small reads of memory that is slow to ask, as few large ones. Control plane.
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

// Models MemoryReader. A window is a snapshot: later writes to the memory are not seen. So make one
// for a piece of work, and do not keep it.
class MemoryWindows {
 public:
  // A window begins at a multiple of this, as Windows' images do.
  static constexpr std::size_t kWindowBytes = std::size_t{1} << 16;
  // That are kept. The one that was read in first goes first.
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
        // Behind a gap, or its beginning: where the memory there begins is not known.
        done += read_(at, rest);
        break;
      }
      const std::size_t count = std::min(rest.size(), window.size() - offset);
      std::copy_n(window.begin() + static_cast<std::ptrdiff_t>(offset), count, rest.begin());
      done += count;
      if (offset + count < kWindowBytes) break;  // all of it, or all there is
    }
    has_failed_ |= done == 0 && !bytes.empty();
    return done;
  }

  // True if a read of some bytes found none.
  [[nodiscard]] bool has_failed() const { return has_failed_; }

 private:
  struct Window {
    Address start = 1;  // of none
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
