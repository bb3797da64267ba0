#include "strobe/worker/program/remote_platform.h"

#include <atomic>
#include <mutex>
#include <optional>

#include "strobe/aggregate/label_table.h"
#include "strobe/aggregate/slow_spans.h"
#include "strobe/base/keep_for_ever.h"
#include "strobe/core/sample_context.h"
#include "strobe/platform/fork_safe_mutex.h"
#include "strobe/platform/linux/linux_platform.h"
#include "strobe/provider/level_memory.h"
#include "strobe/runtime/channels/channel_arena.h"
#include "strobe/unwind/unwind_table.h"

namespace strobe::internal {
namespace {

struct State {
  SharedArea area;
  // What captures go by as long as the worker shows them no tables: nothing is known of any code,
  // so each record takes the registers and the stack along.
  UnwindModules no_tables{{}, /*is_complete=*/false};
  std::uint64_t fork_count = 0;
  std::uint32_t chunk_channels = 0;
  std::uint64_t chunk_bytes = 0;
  std::uint32_t used_chunks = 0;  // guarded by the mutex
  std::uint32_t worker = 0;       // guarded by the mutex: the last worker's number
};

constinit ForkSafeMutex<LinuxPlatform> mutex;
// Never freed: a late signal may still touch the area.
constinit std::atomic<State*> state{nullptr};
constinit PublishedCode unknown_code;
constinit std::atomic<PublishedCode*> shared_code{&unknown_code};

bool IsOfThisProcess(const State* own) {
  return own != nullptr && own->fork_count == LinuxPlatform::ForkCount();
}

// A capture sets is_capturing before it asks for the code. If none is seen under way after this,
// each later one goes by this code.
void UseCodeOf(State& own, std::uint32_t worker) {
  PublishedCode& next = own.area.CodeOf(worker);
  next.generation.store(0, std::memory_order_relaxed);
  next.tables.store(&own.no_tables, std::memory_order_seq_cst);
  own.worker = worker;
  shared_code.store(&next, std::memory_order_seq_cst);
}

// A fork's child counts its own sets and spans: those of its parent's worker are the parent's.
void ShareLabels(std::uint64_t number, const LabelSet& set) noexcept {
  const State* const own = state.load(std::memory_order_acquire);
  if (IsOfThisProcess(own)) own->area.Contexts().labels.Add(number, set);
}
void ShareProcessLabels(std::uint64_t number) noexcept {
  const State* const own = state.load(std::memory_order_acquire);
  if (IsOfThisProcess(own))
    own->area.Contexts().process_labels.store(number, std::memory_order_release);
}
void ShareSlowSpan(SpanNumber span) noexcept {
  const State* const own = state.load(std::memory_order_acquire);
  if (IsOfThisProcess(own)) own->area.Contexts().slow_spans.Add(span);
}

std::span<std::byte> LevelsOfThisProcess() {
  const State* const own = state.load(std::memory_order_acquire);
  return IsOfThisProcess(own) ? own->area.Levels() : std::span<std::byte>();
}

}  // namespace

absl::Status RemotePlatform::Open(std::uint32_t chunks, std::uint32_t chunk_channels,
                                  std::uint64_t chunk_bytes) {
  const std::lock_guard lock(mutex);
  if (const State* const own = state.load(std::memory_order_acquire); IsOfThisProcess(own)) {
    if (own->chunk_bytes == chunk_bytes && own->area.Chunk(chunks - 1).data() != nullptr)
      return absl::OkStatus();
    return absl::FailedPreconditionError(
        "threads.ring_bytes and threads.max_threads are as the process's first profiler with a "
        "worker has them");
  }
  absl::StatusOr<SharedArea> area = SharedArea::Create(chunks, chunk_channels, chunk_bytes);
  if (!area.ok()) return area.status();
  auto* const made = new State{.area = *area,
                               .fork_count = ForkCount(),
                               .chunk_channels = chunk_channels,
                               .chunk_bytes = chunk_bytes};
  KeepForEver(made);
  state.store(made, std::memory_order_release);
  UseCodeOf(*made, 0);
  ProcessLabels().Tell(&ShareLabels);
  ProcessContext::Tell(&ShareProcessLabels);
  TellSlowSpans(&ShareSlowSpan);
  LevelMemory::Share(&LevelsOfThisProcess);
  return absl::OkStatus();
}

std::uint32_t RemotePlatform::BeginWorker() {
  const std::lock_guard lock(mutex);
  State* const own = state.load(std::memory_order_acquire);
  UseCodeOf(*own, own->worker + 1);
  own->area.GiveTo(own->worker);
  return own->worker;
}

const SharedArea& RemotePlatform::Area() { return state.load(std::memory_order_acquire)->area; }

RemotePlatform::Mapping RemotePlatform::MapMemory(std::uint64_t bytes) {
  const std::lock_guard lock(mutex);
  State* const own = state.load(std::memory_order_acquire);
  if (!IsOfThisProcess(own) || bytes != own->chunk_bytes) return {};
  if (!own->area.OpenChunk(own->used_chunks)) return {};
  return {.bytes = own->area.Chunk(own->used_chunks++)};
}

STROBE_SIGNAL_SAFE PublishedCode& RemotePlatform::SharedCode() noexcept {
  return *shared_code.load(std::memory_order_seq_cst);
}

}  // namespace strobe::internal
