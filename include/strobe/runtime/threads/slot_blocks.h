// SlotBlocks: the slots of one profiler: its arena, and a RegisteredThread for each channel in it.
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
#include "strobe/runtime/channels/slot_arena.h"
#include "strobe/runtime/threads/registered_thread.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// Thread-safe. A slot keeps its address and its channel until this object ends; no slot may be in
// use then. While the arena is open, signals that carry the token of one of its channels are
// captures.
template <class Traits>
class SlotBlocks {
 public:
  using Slot = RegisteredThread<Traits>;
  using Platform = typename Traits::Platform;
  // The slots of a chunk of the arena.
  static constexpr std::size_t kBlockSlots = SlotArena<Traits>::kSlotsPerChunk;

  explicit SlotBlocks(std::size_t ring_bytes) : ring_bytes_(ring_bytes) {}
  ~SlotBlocks() {
    if (arena() == nullptr) return;
    if constexpr (!AdoptsChannels<Platform>)
      CaptureEntryOf(arena()->number()).function.store(nullptr, std::memory_order_release);
    SlotArena<Traits>::Release(arena());
  }
  SlotBlocks(const SlotBlocks&) = delete;
  SlotBlocks& operator=(const SlotBlocks&) = delete;

  // Makes sure that there is an arena. ResourceExhausted if there are too many.
  absl::Status Open() {
    const std::lock_guard lock(mutex_);
    if (arena() != nullptr) return absl::OkStatus();
    SlotArena<Traits>* const arena = SlotArena<Traits>::Acquire(ring_bytes_);
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
  SlotArena<Traits>* arena() const { return arena_.load(std::memory_order_acquire); }

  // Makes another kBlockSlots slots. Requires Open. ResourceExhausted at the limit of slots or of
  // memory for rings. std::bad_alloc leaves all as it was.
  absl::StatusOr<std::span<Slot>> Grow() {
    const std::lock_guard lock(mutex_);
    const std::size_t chunk = blocks_.size();
    if (chunk == SlotArena<Traits>::kMaxChunks)
      return absl::ResourceExhaustedError("no room for another thread's state");
    auto block = std::make_unique<Block>();
    const auto channels = arena()->Channels(chunk);
    if (channels.empty())
      return absl::ResourceExhaustedError("no memory for another thread's ring");
    blocks_.push_back(std::move(block));
    const std::span<Slot> slots = *blocks_.back();
    for (std::size_t i = 0; i < slots.size(); ++i)
      slots[i].Use(channels[i], static_cast<std::uint32_t>(chunk * kBlockSlots + i));
    return slots;
  }

  // The slot with that index, which must exist.
  [[nodiscard]] Slot* At(std::size_t index) const {
    const std::lock_guard lock(mutex_);
    return &(*blocks_[index / kBlockSlots])[index % kBlockSlots];
  }

  // The number of slots.
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return blocks_.size() * kBlockSlots;
  }

  // Of the slots and their channels, without rings.
  [[nodiscard]] std::size_t memory_bytes() const {
    const std::lock_guard lock(mutex_);
    return blocks_.size() * sizeof(Block) + (arena() != nullptr ? arena()->memory_bytes() : 0);
  }

  // Calls visit(slot) for each slot. Needs no memory.
  template <class Visitor>
  void VisitAll(Visitor&& visit) {
    for (std::size_t i = 0; Block* const block = BlockOf(i); ++i) {
      for (Slot& slot : *block) visit(slot);
    }
  }

  // Calls visit(slot) for each slot marked since the last call. Needs no memory. Requires Open.
  template <class Visitor>
  void VisitMarked(Visitor&& visit) {
    arena()->VisitMarks([&](std::size_t chunk, std::uint64_t marks) {
      Block* const block = BlockOf(chunk);
      if (block == nullptr) return;  // the mark of an earlier owner
      for (; marks != 0; marks &= marks - 1)
        visit((*block)[static_cast<std::size_t>(std::countr_zero(marks))]);
    });
  }

  // True if a capture is under way in any slot. Needs neither memory nor a lock. Requires Open.
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
  using Block = std::array<Slot, kBlockSlots>;

  // The slots of a chunk of the arena; nullptr if there are none.
  Block* BlockOf(std::size_t chunk) {
    const std::lock_guard lock(mutex_);
    return chunk < blocks_.size() ? blocks_[chunk].get() : nullptr;
  }

  const std::size_t ring_bytes_;
  mutable std::mutex mutex_;
  std::atomic<SlotArena<Traits>*> arena_{nullptr};
  std::vector<std::unique_ptr<Block>> blocks_;  // by chunk of the arena; all are freed together
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
