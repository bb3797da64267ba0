// MemoryWindows: many small reads of memory that is slow to ask, as few large ones. Control plane.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <utility>
#include <vector>

#include "strobe/base/address.h"

namespace strobe {

// Of every window that is read in, all is taken as it was then: for one piece of work, not for
// longer.
class MemoryWindows {
 public:
  // Copies memory; returns how many bytes could be read, from the front.
  using ReadMemory = std::function<std::size_t(Address address, std::span<std::uint8_t> bytes)>;

  // A window begins at a multiple of this, as Windows' images do.
  static constexpr std::size_t kWindowBytes = std::size_t{1} << 16;
  // That are kept. The one that was read in first goes first.
  static constexpr std::size_t kMaxWindows = 16;

  explicit MemoryWindows(ReadMemory read) : read_(std::move(read)) {}

  // As ReadMemory.
  std::size_t Read(Address address, std::span<std::uint8_t> bytes) {
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

  // Whether there was nothing where something was looked for.
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

  const ReadMemory read_;
  std::array<Window, kMaxWindows> windows_;
  std::size_t next_ = 0;
  bool has_failed_ = false;
};

}  // namespace strobe
