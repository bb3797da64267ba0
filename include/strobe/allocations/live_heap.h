// LiveHeap: the sampled blocks that are live, and the stacks that have allocated them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "strobe/allocations/live_blocks.h"
#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/stack.h"
#include "strobe/core/stack_table.h"
#include "strobe/provider/amount_sampler.h"
#include "strobe/provider/level_memory.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// A block of bytes without addresses, of which all zero ones are an empty heap. The program writes
// it, in its own memory or in LevelMemory; there a worker reads it.
struct LiveHeap {
  LiveEntries<> blocks;
  StackTable<> stacks;

  // No program has as much in a block.
  static constexpr std::int64_t kMaxBytes = std::int64_t{1} << 61;
  // Of all stacks of a visit together; blocks beyond that are without frames.
  static constexpr std::size_t kMaxVisitedFrames = std::size_t{1} << 23;

  // Calls visit(leaf_first, end, amounts) for each block. Without frames, its stack is not known.
  // Takes no memory. Believes nothing that stands in the heap: skips a block that no program has
  // written, and ends at a stack that is longer than one can be.
  template <class Visitor>
  void Visit(Visitor&& visit) const {
    std::array<Address, kMaxFramesLimit + 1> frames;
    bool is_sound = true;
    std::size_t left_frames = kMaxVisitedFrames;
    blocks.Visit([&](const LiveBlock& block) {
      const bool has_stack = block.stack != StackTable<>::kNone;
      if (!is_sound || block.bytes < 0 || block.bytes > kMaxBytes) return;
      if (has_stack && block.stack > StackTable<>::kNodes) return;
      StackEnd end{};
      const std::size_t count = has_stack ? stacks.Read(block.stack, frames, end) : 0;
      is_sound = count < frames.size();
      if (!is_sound) return;
      const std::size_t shown = count <= left_frames ? count : 0;
      left_frames -= shown;
      visit(std::span(frames).first(shown), end,
            SampledAmounts{.count = block.objects, .total = block.bytes});
    });
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

// Calls visit(leaf_first, end, values) for each block of the program, with the values of
// AllocationProvider.
template <class Visitor>
void VisitLiveHeap(Visitor& visit) {
  const LiveHeap* const heap = LiveHeap::OfProgram();
  if (heap == nullptr) return;
  heap->Visit(
      [&](std::span<const Address> leaf_first, StackEnd end, const SampledAmounts& amounts) {
        visit(leaf_first, end, std::array<std::int64_t, 4>{0, 0, amounts.count, amounts.total});
      });
}

}  // namespace internal
}  // namespace strobe
