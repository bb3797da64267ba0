#include "strobe/allocations/allocation_sampling.h"

#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <thread>

#include "sampled_allocations.h"
#include "strobe/allocations/live_blocks.h"
#include "strobe/core/stack_table.h"

namespace strobe::internal {
namespace {

constinit std::atomic<const AllocationSink*> current_sink{nullptr};
constinit std::atomic<std::int64_t> interval_bytes{AllocationOptions().interval_bytes};
constinit std::atomic<bool> keeps_live_blocks{false};
// Of the blocks in live_blocks.
constinit StackTable<> live_stacks;
constinit std::atomic<std::int64_t> untaken_objects{0};
constinit std::atomic<std::int64_t> untaken_bytes{0};
// Threads that may use the sink.
constinit std::atomic<int> users{0};
// How long the end of a sink waits for them. One that takes longer is stopped by a debugger, or was
// left behind by a fork.
constexpr std::chrono::milliseconds kUsersWait{100};

// The frames, from the leaf, of a stack that an inuse row has.
constexpr std::size_t kMaxVisitedFrames = 1024;

// Distinguishes threads, and calls.
std::uint64_t NewSeed() {
  static constinit std::atomic<std::uint64_t> count{0};
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return static_cast<std::uint64_t>(now) ^ count.fetch_add(1, std::memory_order_relaxed) << 48;
}

// Records the event, and by option keeps the block with its stack until the block is freed.
void Record(const AllocationSink& sink, const void* block, const AllocationAmounts& amounts) {
  const bool keeps_block = keeps_live_blocks.load(std::memory_order_relaxed);
  StackKeeper keeper{.table = live_stacks};
  if (!sink.record(sink.profiler, amounts, keeps_block ? &keeper : nullptr)) {
    untaken_objects.fetch_add(amounts.objects, std::memory_order_relaxed);
    untaken_bytes.fetch_add(amounts.bytes, std::memory_order_relaxed);
  } else if (keeps_block) {
    live_blocks.Add(block,
                    {.objects = amounts.objects, .bytes = amounts.bytes, .stack = keeper.number});
  }
}

}  // namespace

constinit LiveBlocks<> live_blocks;
constinit thread_local AllocationSampler allocation_sampler;

void* TakeAllocation(void* block, std::size_t size) noexcept {
  const int saved_errno = errno;
  const AllocationAmounts amounts =
      allocation_sampler.Take(size, interval_bytes.load(std::memory_order_relaxed), NewSeed());
  if (amounts.objects > 0 && block != nullptr) {
    users.fetch_add(1, std::memory_order_seq_cst);
    const AllocationSink* const sink = current_sink.load(std::memory_order_seq_cst);
    if (sink != nullptr) Record(*sink, block, amounts);
    users.fetch_sub(1, std::memory_order_release);
  }
  errno = saved_errno;
  return block;
}

absl::Status BeginAllocations(const AllocationSink& sink, const AllocationOptions& options) {
  if (options.interval_bytes < 1 || options.interval_bytes > kMaxAllocationIntervalBytes) {
    return absl::InvalidArgumentError(
        "AllocationOptions::interval_bytes: expected a number from 1 to 2^40");
  }
  static constinit std::mutex mutex;
  const std::lock_guard lock(mutex);
  if (current_sink.load(std::memory_order_relaxed) != nullptr)
    return absl::FailedPreconditionError("allocations are sampled already");
  // What an earlier sampling has left is not followed any more.
  live_blocks.Clear();
  live_stacks.Clear();
  untaken_objects.store(0, std::memory_order_relaxed);
  untaken_bytes.store(0, std::memory_order_relaxed);
  interval_bytes.store(options.interval_bytes, std::memory_order_relaxed);
  keeps_live_blocks.store(options.live_heap, std::memory_order_relaxed);
  current_sink.store(&sink, std::memory_order_seq_cst);
  return absl::OkStatus();
}

void EndAllocations(const AllocationSink& /*sink*/) {
  current_sink.store(nullptr, std::memory_order_seq_cst);
  const auto deadline = std::chrono::steady_clock::now() + kUsersWait;
  while (users.load(std::memory_order_seq_cst) != 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
}

AllocationStats CollectAllocationStats() {
  return {.untaken_objects = untaken_objects.load(std::memory_order_relaxed),
          .untaken_bytes = untaken_bytes.load(std::memory_order_relaxed),
          .blocks_refused = live_blocks.refused(),
          .stacks_refused = live_stacks.refused()};
}

void VisitLiveStacks(void (*visit)(void* context, std::span<const Address> leaf_first, StackEnd end,
                                   const AllocationAmounts& amounts),
                     void* context) {
  std::array<Address, kMaxVisitedFrames> frames;
  live_blocks.Visit([&](const LiveBlock& block) {
    StackEnd end{};
    const std::size_t count =
        block.stack == StackTable<>::kNone ? 0 : live_stacks.Read(block.stack, frames, end);
    visit(context, std::span(frames).first(count), end,
          {.objects = block.objects, .bytes = block.bytes});
  });
}

}  // namespace strobe::internal
