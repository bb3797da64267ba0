// LiveHeap: the sampled blocks that are live, or were at the peak, and the stacks that have
// allocated them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "strobe/allocations/live_entries.h"
#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/clock/system_clock.h"
#include "strobe/core/label_set.h"
#include "strobe/core/stack.h"
#include "strobe/core/stack_table.h"
#include "strobe/provider/amount_sampler.h"
#include "strobe/provider/level_memory.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// A block of bytes without addresses, of which all zero ones are an empty heap. The program writes
// it, in its own memory or in LevelMemory; there a worker reads it.
struct LiveHeap {
  // The ages that a live block may have at least, in seconds: each has a label.
  static constexpr std::array<std::int64_t, 6> kAges_s{0, 1, 10, 60, 600, 3600};
  static constexpr std::string_view kAgeLabel = "age_s";

  LiveEntries<> blocks;
  StackTable<> stacks;
  // Of each age, the number of the set with its label; see LabelTable.
  std::array<std::atomic<std::uint64_t>, kAges_s.size()> age_labels{};

  // No program has as much in a block.
  static constexpr std::int64_t kMaxBytes = std::int64_t{1} << 61;
  // Of all stacks of a visit together; blocks beyond that are without frames.
  static constexpr std::size_t kMaxVisitedFrames = std::size_t{1} << 23;

  // What a visit shows of a block.
  struct Seen {
    std::span<const Address> leaf_first{};  // empty if the stack is not known
    StackEnd end{};
    SampledAmounts amounts;
    bool is_live = false;
    bool is_of_peak = false;
    std::uint64_t labels = kNoContext;  // the age of a live block
  };
  // Calls visit(seen) for each block. Takes no memory. Believes nothing that stands in the heap:
  // skips a block that no program has written, and ends at a stack that is longer than one can be.
  template <class Visitor>
  void Visit(std::int64_t now_ns, Visitor&& visit) const {
    std::array<Address, kMaxFramesLimit + 1> frames;
    bool is_sound = true;
    std::size_t left_frames = kMaxVisitedFrames;
    blocks.Visit([&](const LiveBlock& block, bool is_live, bool is_of_peak) {
      const bool has_stack = block.stack != StackTable<>::kNone;
      if (!is_sound || block.bytes < 0 || block.bytes > kMaxBytes) return;
      if (has_stack && block.stack > StackTable<>::kNodes) return;
      Seen seen{.amounts = {.count = block.objects, .total = block.bytes},
                .is_live = is_live,
                .is_of_peak = is_of_peak};
      const std::size_t count = has_stack ? stacks.Read(block.stack, frames, seen.end) : 0;
      is_sound = count < frames.size();
      if (!is_sound) return;
      const std::size_t shown = count <= left_frames ? count : 0;
      left_frames -= shown;
      seen.leaf_first = std::span(frames).first(shown);
      if (is_live && block.birth_ns > 0) seen.labels = LabelsOfAge(now_ns, block.birth_ns);
      visit(seen);
    });
  }
  // An age that is not positive is the first one.
  [[nodiscard]] std::uint64_t LabelsOfAge(std::int64_t now_ns, std::int64_t birth_ns) const {
    const std::int64_t age_s = now_ns > birth_ns ? (now_ns - birth_ns) / 1'000'000'000 : 0;
    const auto next = std::ranges::upper_bound(kAges_s, age_s);
    return age_labels[static_cast<std::size_t>(next - kAges_s.begin()) - 1].load(
        std::memory_order_relaxed);
  }

  // That of this process; nullptr before the library strobe-allocations has one.
  static std::atomic<LiveHeap*>& OfProcess() {
    static constinit std::atomic<LiveHeap*> heap{nullptr};
    return heap;
  }
  // That of the program that the calling thread, a worker's, serves; elsewhere this process's.
  static const LiveHeap* OfProgram() {
    const std::span<const std::byte> served = LevelMemory::Served();
    if (served.empty()) return OfProcess().load(std::memory_order_acquire);
    return served.size() < sizeof(LiveHeap) ? nullptr
                                            : reinterpret_cast<const LiveHeap*>(served.data());
  }
};
static_assert(sizeof(LiveHeap) <= LevelMemory::kBytes);

// Calls visit(leaf_first, end, values, labels) for each block of the program, with the values of
// AllocationProvider.
template <class Visitor>
void VisitLiveHeap(Visitor& visit) {
  const LiveHeap* const heap = LiveHeap::OfProgram();
  if (heap == nullptr) return;
  heap->Visit(SystemClock().MonotonicNs(), [&](const LiveHeap::Seen& seen) {
    const auto& [count, total] = seen.amounts;
    std::array<std::int64_t, 6> values{};
    if (seen.is_of_peak) values[2] = count, values[3] = total;
    if (seen.is_live) values[4] = count, values[5] = total;
    visit(seen.leaf_first, seen.end, values, seen.labels);
  });
}

}  // namespace internal
}  // namespace strobe
