// ThreadTable: the arena of one profiler, and a RegisteredThread for each channel in it.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/base/visibility.h"
#include "strobe/platform/capture_target.h"
#include "strobe/runtime/capture/capture.h"
#include "strobe/runtime/channels/channel_arena.h"
#include "strobe/runtime/threads/registered_thread.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Thread-safe. A thread keeps its address and its channel until this object ends; no thread may be
// in use then. While the arena is open, signals that carry the token of one of its channels are
// captures.
template <class Traits>
class ThreadTable {
 public:
  using Thread = RegisteredThread<Traits>;
  using Platform = typename Traits::Platform;
  // The threads of a chunk of the arena.
  static constexpr std::size_t kBlockThreads = ChannelArena<Traits>::kChannelsPerChunk;

  explicit ThreadTable(std::size_t ring_bytes) : ring_bytes_(ring_bytes) {}
  ~ThreadTable() {
    if (arena() == nullptr) return;
    if constexpr (!AdoptsChannels<Platform>)
      CaptureEntryOf(arena()->number()).function.store(nullptr, std::memory_order_release);
    ChannelArena<Traits>::Release(arena());
  }
  ThreadTable(const ThreadTable&) = delete;
  ThreadTable& operator=(const ThreadTable&) = delete;

  // Makes sure that there is an arena. ResourceExhausted if there are too many.
  absl::Status Open() {
    const std::lock_guard lock(mutex_);
    if (arena() != nullptr) return absl::OkStatus();
    ChannelArena<Traits>* const arena = ChannelArena<Traits>::Acquire(ring_bytes_);
    if (arena == nullptr) return absl::ResourceExhaustedError("too many profilers exist at a time");
    arena_.store(arena, std::memory_order_release);
    if constexpr (!AdoptsChannels<Platform>) {
      CaptureEntry& entry = CaptureEntryOf(arena->number());
      entry.context = arena;
      entry.function.store(&CaptureSample<Traits>, std::memory_order_release);
    }
    return absl::OkStatus();
  }

  // The arena; nullptr before Open. Signal-safe.
  ChannelArena<Traits>* arena() const { return arena_.load(std::memory_order_acquire); }

  // Makes another kBlockThreads threads. Requires Open. ResourceExhausted at the limit of threads
  // or of memory for rings. std::bad_alloc leaves all as it was.
  absl::StatusOr<std::span<Thread>> Grow() {
    const std::lock_guard lock(mutex_);
    const std::size_t chunk = blocks_.size();
    if (chunk == ChannelArena<Traits>::kMaxChunks)
      return absl::ResourceExhaustedError("no room for another thread's state");
    auto block = std::make_unique<Block>();
    const auto channels = arena()->Channels(chunk);
    if (channels.empty())
      return absl::ResourceExhaustedError("no memory for another thread's ring");
    blocks_.push_back(std::move(block));
    const std::span<Thread> threads = *blocks_.back();
    for (std::size_t i = 0; i < threads.size(); ++i)
      threads[i].Use(channels[i], static_cast<std::uint32_t>(chunk * kBlockThreads + i));
    return threads;
  }

  // The thread with that index, which must exist.
  [[nodiscard]] Thread* At(std::size_t index) const {
    const std::lock_guard lock(mutex_);
    return &(*blocks_[index / kBlockThreads])[index % kBlockThreads];
  }

  // The number of threads.
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return blocks_.size() * kBlockThreads;
  }

  // Of the threads and their channels, without rings.
  [[nodiscard]] std::size_t memory_bytes() const {
    const std::lock_guard lock(mutex_);
    return blocks_.size() * sizeof(Block) + (arena() != nullptr ? arena()->memory_bytes() : 0);
  }

  // Calls visit(thread) for each thread. Needs no memory.
  template <class Visitor>
  void VisitAll(Visitor&& visit) {
    for (std::size_t i = 0; Block* const block = BlockOf(i); ++i) {
      for (Thread& thread : *block) visit(thread);
    }
  }

  // Calls visit(thread) for each thread marked since the last call. Needs no memory. Requires Open.
  template <class Visitor>
  void VisitMarked(Visitor&& visit) {
    arena()->VisitMarks([&](std::size_t chunk, std::uint64_t marks) {
      Block* const block = BlockOf(chunk);
      if (block == nullptr) return;  // the mark of an earlier owner
      for (; marks != 0; marks &= marks - 1)
        visit((*block)[static_cast<std::size_t>(std::countr_zero(marks))]);
    });
  }

  // True if a capture is under way in any thread. Needs neither memory nor a lock. Requires Open.
  [[nodiscard]] bool IsCapturing() {
    // A program that has ended may have left a capture half done.
    if constexpr (requires { Platform::HasEnded(); }) {
      if (Platform::HasEnded()) return false;
    }
    bool is_capturing = false;
    arena()->VisitAll([&](const SampleChannel<Traits>& channel) {
      is_capturing |= channel.is_capturing.load(std::memory_order_seq_cst);
    });
    return is_capturing;
  }

 private:
  using Block = std::array<Thread, kBlockThreads>;

  // The threads of a chunk of the arena; nullptr if there are none.
  Block* BlockOf(std::size_t chunk) {
    const std::lock_guard lock(mutex_);
    return chunk < blocks_.size() ? blocks_[chunk].get() : nullptr;
  }

  const std::size_t ring_bytes_;
  mutable std::mutex mutex_;
  std::atomic<ChannelArena<Traits>*> arena_{nullptr};
  std::vector<std::unique_ptr<Block>> blocks_;  // by chunk of the arena; all are freed together
};

}  // namespace internal
}  // namespace strobe
