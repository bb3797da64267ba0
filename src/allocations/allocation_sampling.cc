#include "strobe/allocations/allocation_sampling.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sampled_allocations.h"
#include "strobe/allocations/live_blocks.h"
#include "strobe/core/stack_table.h"
#include "strobe/provider/amount_sampler.h"
#include "strobe/provider/process_sink.h"

namespace strobe::internal {
namespace {

constinit ProcessSink sink;
constinit std::atomic<std::int64_t> interval_bytes{AllocationOptions().interval_bytes};
constinit std::atomic<bool> keeps_live_blocks{false};
// Of the blocks in live_blocks->
constinit ZeroedTable<StackTable<>> live_stacks;

// The frames, from the leaf, of a stack that an inuse row has.
constexpr std::size_t kMaxVisitedFrames = 1024;

}  // namespace

constinit ZeroedTable<LiveBlocks<>> live_blocks;
constinit thread_local AmountSampler allocation_sampler;

void* TakeAllocation(void* block, std::size_t size) noexcept {
  const int saved_errno = errno;
  const SampledAmounts amounts =
      allocation_sampler.Take(size, interval_bytes.load(std::memory_order_relaxed), NewSeed());
  if (amounts.count > 0 && block != nullptr) {
    const ProcessSink::Use use(sink);
    // By option, the block is kept with its stack until it is freed.
    const bool keeps_block = keeps_live_blocks.load(std::memory_order_relaxed);
    StackKeeper keeper{.table = *live_stacks};
    if (use.Record(amounts, keeps_block ? &keeper : nullptr) && keeps_block) {
      live_blocks->Add(block,
                       {.objects = amounts.count, .bytes = amounts.total, .stack = keeper.number});
    }
  }
  errno = saved_errno;
  return block;
}

void ForgetBlock(const void* block) noexcept { static_cast<void>(live_blocks->Remove(block)); }

absl::Status BeginAllocations(const EventTarget& target, const AllocationOptions& options) {
  if (options.interval_bytes < 1 || options.interval_bytes > kMaxSamplingInterval) {
    return absl::InvalidArgumentError(
        "AllocationOptions::interval_bytes: expected a number from 1 to 2^40");
  }
  const bool is_first = sink.Open(target, [&options] {
    // What an earlier sampling has left is not followed any more.
    live_blocks->Clear();
    live_stacks->Clear();
    interval_bytes.store(options.interval_bytes, std::memory_order_relaxed);
    keeps_live_blocks.store(options.live_heap, std::memory_order_relaxed);
  });
  return is_first ? absl::OkStatus()
                  : absl::FailedPreconditionError("allocations are sampled already");
}

void EndAllocations() { sink.Close(); }

AllocationStats CollectAllocationStats() {
  const SampledAmounts untaken = sink.untaken();
  return {.untaken_objects = untaken.count,
          .untaken_bytes = untaken.total,
          .blocks_refused = live_blocks->refused(),
          .stacks_refused = live_stacks->refused()};
}

void VisitLiveStacks(void (*visit)(void* context, std::span<const Address> leaf_first, StackEnd end,
                                   const SampledAmounts& amounts),
                     void* context) {
  std::array<Address, kMaxVisitedFrames> frames;
  live_blocks->Visit([&](const LiveBlock& block) {
    StackEnd end{};
    const std::size_t count =
        block.stack == StackTable<>::kNone ? 0 : live_stacks->Read(block.stack, frames, end);
    visit(context, std::span(frames).first(count), end,
          {.count = block.objects, .total = block.bytes});
  });
}

}  // namespace strobe::internal
