#include "strobe/allocations/allocation_sampling.h"

#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <span>

#include "../platform/own_threads.h"
#include "sampled_allocations.h"
#include "strobe/aggregate/label_table.h"
#include "strobe/allocations/live_heap.h"
#include "strobe/clock/system_clock.h"
#include "strobe/platform/fork_safe_mutex.h"
#include "strobe/platform/native.h"
#include "strobe/provider/amount_sampler.h"
#include "strobe/provider/level_memory.h"
#include "strobe/provider/process_sink.h"

namespace strobe::internal {
namespace {

constinit ProcessSink sink;
constinit std::atomic<std::int64_t> interval_bytes{AllocationOptions().interval_bytes};
constinit std::atomic<bool> keeps_live_blocks{false};
constinit ForkSafeMutex<NativePlatform> control_mutex;
constinit ZeroedTable<LiveHeap> own_heap;
// The process that may write the heap in use: 0 if that lies in memory of which a fork's child has
// a copy.
constinit std::atomic<std::uint64_t> heap_process{0};

LiveHeap& HeapInUse() {
  LiveHeap* const heap = LiveHeap::OfProcess().load(std::memory_order_acquire);
  return heap != nullptr ? *heap : *own_heap;
}

// False in a fork's child of a program whose heap its worker sees.
bool MayWriteHeap() {
  const std::uint64_t process = heap_process.load(std::memory_order_acquire);
  return process == 0 || process == NativePlatform::ProcessId();
}

// From now on blocks and stacks lie in that heap, of which nothing is kept. No thread may add one.
void UseHeap(LiveHeap& heap, std::uint64_t process) {
  live_blocks->Hide();
  sink.AwaitUsers();  // those that remove one
  heap_process.store(process, std::memory_order_release);
  live_blocks->Use(heap.blocks);
  heap.stacks.Clear();
  for (std::size_t i = 0; i < LiveHeap::kAges_s.size(); ++i) {
    const std::uint64_t labels =
        ProcessLabels().Intern({{LiveHeap::kAgeLabel, LiveHeap::kAges_s[i]}});
    heap.age_labels[i].store(labels == kOverflowContext ? kNoContext : labels,
                             std::memory_order_relaxed);
  }
  LiveHeap::OfProcess().store(&heap, std::memory_order_release);
}

// See LevelMemory. Blocks that are live now are not followed any more.
void MoveHeap(std::span<std::byte> memory) {
  if (memory.size() < sizeof(LiveHeap)) return;
  const std::lock_guard lock(control_mutex);
  sink.Pause(
      [&] { UseHeap(*reinterpret_cast<LiveHeap*>(memory.data()), NativePlatform::ProcessId()); });
}

// Begins with an empty heap, in the memory that a worker sees if there is one.
void PrepareHeap() {
  const std::span<std::byte> memory = LevelMemory::Shared();
  auto& heap =
      memory.size() < sizeof(LiveHeap) ? *own_heap : *reinterpret_cast<LiveHeap*>(memory.data());
  const bool is_shared = &heap != &*own_heap;
  const bool is_in_use = live_blocks->is_used() && &heap == &HeapInUse() && MayWriteHeap();
  if (!is_in_use) return UseHeap(heap, is_shared ? NativePlatform::ProcessId() : 0);
  live_blocks->Clear();
  heap.stacks.Clear();
}

}  // namespace

constinit ZeroedTable<LiveBlocks<>> live_blocks;
constinit thread_local AmountSampler allocation_sampler;

void* TakeAllocation(void* block, std::size_t size) noexcept {
  const int saved_errno = errno;
  const SampledAmounts amounts =
      allocation_sampler.Take(size, interval_bytes.load(std::memory_order_relaxed), NewSeed());
  // What Strobe's own threads allocate is not the program's.
  if (amounts.count > 0 && block != nullptr && !IsOnOwnThread<NativePlatform>()) {
    const ProcessSink::Use use(sink);
    // By option, the block is kept with its stack until it is freed.
    const bool keeps_block = keeps_live_blocks.load(std::memory_order_relaxed) && MayWriteHeap();
    StackKeeper keeper{.table = HeapInUse().stacks};
    if (use.Record(amounts, keeps_block ? &keeper : nullptr) && keeps_block) {
      live_blocks->Add(block, {.objects = amounts.count,
                               .bytes = amounts.total,
                               .stack = keeper.number,
                               .birth_ns = SystemClock().MonotonicNs()});
    }
  }
  errno = saved_errno;
  return block;
}

std::optional<LiveBlock> ForgetBlock(const void* block) noexcept {
  const ProcessSink::Use use(sink);
  return live_blocks->Remove(block, &MayWriteHeap);
}

void RememberBlock(const void* block, const LiveBlock& content) noexcept {
  const ProcessSink::Use use(sink);
  live_blocks->Add(block, content);
}

bool SeesMalloc() {
  // A sampler whose next point is out of reach: an allocation that is seen brings it nearer, and
  // cannot draw the same distance again.
  const AmountSampler kept = allocation_sampler;
  allocation_sampler = AmountSampler::At(kMaxSamplingInterval);
  std::free(std::malloc(1));
  const bool is_seen = allocation_sampler.distance() != kMaxSamplingInterval;
  allocation_sampler = kept;
  return is_seen;
}

absl::Status BeginAllocations(const EventTarget& target, const AllocationOptions& options) {
  if (options.interval_bytes < 1 || options.interval_bytes > kMaxSamplingInterval) {
    return absl::InvalidArgumentError(
        "AllocationOptions::interval_bytes: expected a number from 1 to 2^40");
  }
  if (!SeesMalloc()) {
    return absl::FailedPreconditionError(
        "allocations are not sampled: the program's malloc is that of an allocator in its "
        "executable; link the allocator's shared library in place of its archive, or preload it");
  }
  const std::lock_guard lock(control_mutex);
  LevelMemory::Tell(&MoveHeap);
  const bool is_first = sink.Open(target, [&options] {
    // What an earlier sampling has left is not followed any more.
    PrepareHeap();
    interval_bytes.store(options.interval_bytes, std::memory_order_relaxed);
    keeps_live_blocks.store(options.live_heap, std::memory_order_relaxed);
  });
  return is_first ? absl::OkStatus()
                  : absl::FailedPreconditionError("allocations are sampled already");
}

void EndAllocations() {
  const std::lock_guard lock(control_mutex);
  sink.Close();
}

AllocationStats CollectAllocationStats() {
  const SampledAmounts untaken = sink.untaken();
  return {.untaken_objects = untaken.count,
          .untaken_bytes = untaken.total,
          .blocks_refused = live_blocks->refused(),
          .peak_blocks_refused = live_blocks->peak_dropped(),
          .stacks_refused = HeapInUse().stacks.refused()};
}

}  // namespace strobe::internal
