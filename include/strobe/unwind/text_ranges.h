// TextRanges: where the code of the loaded images lies, written by the collector and read inside
// the handler.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "strobe/base/address.h"
#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/core/module_map.h"

namespace strobe {

// Bytes of code around a pc: what an unwinder may look at to learn whether a function has set up
// its frame yet.
struct CodeWindow {
  std::span<const std::uint8_t> before;  // ends at the pc
  std::span<const std::uint8_t> after;   // begins at the pc
};

STROBE_HIDDEN_BEGIN
namespace internal {

// A sequence lock over a sorted table: a reader that meets a writer goes without. An unwinder may
// look at the bytes of code around a pc, and this table is what validates that read: the bytes lie
// in the executable mapping of an image that is loaded.
class TextRanges {
 public:
  // Mappings beyond this many are not looked into: their code counts as unknown.
  static constexpr std::size_t kMaxRanges = 512;
  // Bytes of code shown to either side of a pc.
  static constexpr std::size_t kWindowBytes = 16;
  // The smallest page of any system: only the pc's own is known to be mapped still. The table may
  // be older than the code at `pc`.
  static constexpr std::size_t kPageBytes = 4096;

  // Collector only.
  void Publish(const ModuleMap& map) {
    const std::uint32_t sequence = sequence_.load(std::memory_order_relaxed);
    sequence_.store(sequence + 1, std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_release);
    std::size_t count = 0;
    for (const Module& module : map.modules()) {
      // Nothing promises that generated code can be read.
      if (module.kind == ModuleKind::kGeneratedCode) continue;
      if (count == kMaxRanges) break;
      starts_[count].store(module.start, std::memory_order_relaxed);
      limits_[count++].store(module.limit, std::memory_order_relaxed);
    }
    count_.store(static_cast<std::uint32_t>(count), std::memory_order_relaxed);
    sequence_.store(sequence + 2, std::memory_order_release);
  }

  // The code around `pc`, whose thread is at this very instruction; empty where nothing is known.
  STROBE_SIGNAL_SAFE CodeWindow Find(Address pc) const noexcept {
    const std::uint32_t before = sequence_.load(std::memory_order_acquire);
    if ((before & 1) != 0) return {};
    const std::size_t count =
        std::min<std::size_t>(count_.load(std::memory_order_relaxed), kMaxRanges);
    std::size_t low = 0;
    std::size_t high = count;
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (starts_[middle].load(std::memory_order_relaxed) <= pc) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (low == 0) return {};
    const Address start = starts_[low - 1].load(std::memory_order_relaxed);
    const Address limit = limits_[low - 1].load(std::memory_order_relaxed);
    std::atomic_thread_fence(std::memory_order_acquire);
    if (sequence_.load(std::memory_order_relaxed) != before || pc < start || pc >= limit) return {};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): validated just above
    const auto* code = reinterpret_cast<const std::uint8_t*>(pc);
    const std::size_t in_page = pc % kPageBytes;
    const std::size_t bytes_before = std::min<std::size_t>({pc - start, in_page, kWindowBytes});
    return {
        .before = {code - bytes_before, bytes_before},
        .after = {code, std::min<std::size_t>({limit - pc, kPageBytes - in_page, kWindowBytes})}};
  }

 private:
  std::atomic<std::uint32_t> sequence_{0};
  std::atomic<std::uint32_t> count_{0};
  std::array<std::atomic<Address>, kMaxRanges> starts_{};
  std::array<std::atomic<Address>, kMaxRanges> limits_{};
};

}  // namespace internal
STROBE_HIDDEN_END
}  // namespace strobe
