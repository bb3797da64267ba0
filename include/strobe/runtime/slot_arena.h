// SlotArena: type-stable storage of slots, and all else that a late signal may still touch.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "strobe/base/cache_line.h"
#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/platform/capture_target.h"
#include "strobe/runtime/published_code.h"
#include "strobe/runtime/thread_slot.h"
#include "strobe/unwind/walk_memo.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// Arenas have numbers, over all traits types: each has a place in the static table that the handler
// reads. At most kMaxArenas exist at a time. With another Platform::ForkCount all begins anew: a
// fork's child leaves its parent's arenas behind. These take no lock, which the parent's threads
// may hold.
int AcquireArenaNumber(std::uint64_t fork_count);  // -1 when all are taken
// An arena of that type that its owner has left to be used again, or nullptr; and to leave one.
void* TakeUnusedArena(const void* type, std::uint64_t fork_count);
void KeepUnusedArena(std::uint8_t number, void* arena, const void* type, std::uint64_t fork_count);
// Tells a leak checker, if there is one, that the object and what it leads to are never deleted.
void KeepForEver(const void* object);

template <class Traits>
class SlotArena {
 public:
  using Slot = ThreadSlot<Traits>;
  using Platform = typename Traits::Platform;
  static constexpr std::size_t kSlotsPerChunk = 64;  // one word of marks
  static constexpr std::size_t kMaxChunks = 4096;
  static_assert(kMaxChunks * kSlotsPerChunk <= std::size_t{1} << SlotToken::kIndexBits);

  // An arena that is not in use, or a new one; nullptr where kMaxArenas are. Arenas are kept for
  // ever and used again: a signal of an ended Profiler may still be on its way.
  static SlotArena* Acquire(std::size_t ring_bytes) {
    const std::uint64_t fork_count = Platform::ForkCount();
    auto* arena = static_cast<SlotArena*>(TakeUnusedArena(&type_, fork_count));
    if (arena == nullptr) {
      // Before the number, which would be lost where there is no memory.
      std::unique_ptr<SlotArena> own(new SlotArena(fork_count));
      const int number = AcquireArenaNumber(fork_count);
      if (number < 0) return nullptr;
      own->number_ = static_cast<std::uint8_t>(number);
      arena = own.release();
      KeepForEver(arena);
    }
    arena->SetRingBytes(ring_bytes);
    return arena;
  }

  // No slot may be in use.
  static void Release(SlotArena* arena) {
    KeepUnusedArena(arena->number_, arena, &type_, arena->fork_count_);
  }

  // The slot of that index, or nullptr. Signal-safe.
  STROBE_SIGNAL_SAFE Slot* Find(std::uint32_t index) noexcept {
    if (index >= kMaxChunks * kSlotsPerChunk) return nullptr;
    Chunk* chunk = chunks_[index / kSlotsPerChunk].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : &chunk->slots[index % kSlotsPerChunk];
  }

  // Slots that there are.
  [[nodiscard]] std::size_t slot_count() const { return chunk_count_ * kSlotsPerChunk; }

  // Makes kSlotsPerChunk more and appends them to `free`, which has room for them. False where the
  // limit is reached. Under the registry's mutex.
  bool Grow(std::vector<Slot*>& free) {
    if (chunk_count_ == kMaxChunks) return false;
    auto chunk = std::make_unique<Chunk>();
    const auto first = static_cast<std::uint32_t>(chunk_count_ * kSlotsPerChunk);
    for (std::size_t i = kSlotsPerChunk; i-- > 0;) {
      Slot& slot = chunk->slots[i];
      slot.token = {.arena = number_,
                    .provider = 0,
                    .use = 0,
                    .index = first + static_cast<std::uint32_t>(i)};
      slot.is_awaited = &Slot::IsAwaited;
      free.push_back(&slot);
    }
    chunks_[chunk_count_++].store(chunk.release(), std::memory_order_release);
    return true;
  }

  // The ring's memory of a slot, committed when touched; empty where it cannot be had. Under the
  // registry's mutex, but for a slot that has it already.
  std::span<std::byte> RingMemory(const Slot& slot) {
    const std::uint32_t index = slot.token.index;
    Chunk& chunk = *chunks_[index / kSlotsPerChunk].load(std::memory_order_relaxed);
    if (chunk.rings == nullptr)
      chunk.rings = (chunk.mapping = Platform::MapMemory(ChunkBytes())).bytes.data();
    if (chunk.rings == nullptr) return {};
    return {chunk.rings + (index % kSlotsPerChunk) * ring_bytes_, ring_bytes_};
  }

  // The memory of what a slot's walks remember, or copy of stacks that are not the thread's own;
  // committed when touched. nullptr without rings.
  WalkMemo* MemoMemory(const Slot& slot) {
    const std::uint32_t index = slot.token.index;
    std::byte* const rings = chunks_[index / kSlotsPerChunk].load(std::memory_order_relaxed)->rings;
    if (rings == nullptr) return nullptr;
    return reinterpret_cast<WalkMemo*>(rings + ring_bytes_ * kSlotsPerChunk +
                                       (index % kSlotsPerChunk) * kMemoBytes);
  }

  // Whether no capture has used the slot since the last call, but one did before, so that it has
  // memory that may be given back.
  static bool IsLongIdle(Slot& slot) {
    const std::uint32_t captures = slot.counters.captures.load(std::memory_order_relaxed);
    if (slot.counters.seen_captures.exchange(captures, std::memory_order_relaxed) == captures)
      return slot.holds_memory();
    slot.has_memory.store(true, std::memory_order_relaxed);
    return false;
  }

  // Gives back what captures have touched of the slot's memory. No capture may be under way or
  // begin, and the ring must be empty.
  void Discard(Slot& slot) {
    WalkMemo* const memo = MemoMemory(slot);
    if (!slot.holds_memory() || memo == nullptr) return;
    const std::span<std::byte> ring = RingMemory(slot);
    Platform::DiscardMemory(ring.data(), ring.size());
    Platform::DiscardMemory(memo, kMemoBytes);
    slot.ring.Reset(ring);
    slot.memo_is_stale.store(true, std::memory_order_relaxed);
    slot.counters.seen_captures.store(slot.counters.captures.load(std::memory_order_relaxed),
                                      std::memory_order_relaxed);
    slot.has_memory.store(false, std::memory_order_relaxed);
  }

  // Says that the slot's ring has a record. Signal-safe.
  STROBE_SIGNAL_SAFE void Mark(const Slot& slot) noexcept {
    const std::uint32_t index = slot.token.index;
    std::atomic<std::uint64_t>& marks =
        chunks_[index / kSlotsPerChunk].load(std::memory_order_relaxed)->marks;
    const std::uint64_t bit = std::uint64_t{1} << (index % kSlotsPerChunk);
    marks.fetch_or(bit, std::memory_order_release);
  }

  // Takes that back, for a slot that no capture uses any more.
  void Unmark(const Slot& slot) noexcept {
    const std::uint32_t index = slot.token.index;
    const std::uint64_t bit = std::uint64_t{1} << (index % kSlotsPerChunk);
    chunks_[index / kSlotsPerChunk]
        .load(std::memory_order_relaxed)
        ->marks.fetch_and(~bit, std::memory_order_acquire);
  }

  // Calls visit(slot) for each slot marked since the last call.
  template <class Visitor>
  void VisitMarked(Visitor&& visit) {
    for (std::size_t i = 0; i < kMaxChunks; ++i) {
      Chunk* chunk = chunks_[i].load(std::memory_order_acquire);
      if (chunk == nullptr) return;
      if (chunk->marks.load(std::memory_order_relaxed) == 0) continue;
      std::uint64_t marks = chunk->marks.exchange(0, std::memory_order_acquire);
      for (; marks != 0; marks &= marks - 1)
        visit(chunk->slots[static_cast<std::size_t>(std::countr_zero(marks))]);
    }
  }

  // Calls visit(slot) for each slot there is, live or not. Needs neither memory nor a lock.
  template <class Visitor>
  void VisitAll(Visitor&& visit) {
    for (std::size_t i = 0; i < kMaxChunks; ++i) {
      Chunk* chunk = chunks_[i].load(std::memory_order_acquire);
      if (chunk == nullptr) return;
      for (Slot& slot : chunk->slots) visit(slot);
    }
  }

  [[nodiscard]] std::uint8_t number() const { return number_; }
  [[nodiscard]] std::size_t memory_bytes() const {
    return sizeof(*this) + chunk_count_ * sizeof(Chunk);
  }
  [[nodiscard]] std::size_t ring_bytes() const { return ring_bytes_; }

  // What captures need beside their slot. The first is written while no slot is active;
  // LoadedCode keeps the other current.
  std::atomic<std::uint32_t> max_frames{0};
  PublishedCode code;

  // Slots that a former owner made: all free. `free` has room for them.
  void AppendAll(std::vector<Slot*>& free) {
    for (std::size_t i = chunk_count_; i-- > 0;) {
      for (std::size_t j = kSlotsPerChunk; j-- > 0;)
        free.push_back(&chunks_[i].load(std::memory_order_relaxed)->slots[j]);
    }
  }

 private:
  // Whole pages of most systems, so that each can be given back by itself.
  static constexpr std::size_t kPageBytes = 4096;
  static constexpr std::size_t kMemoBytes =
      (sizeof(WalkMemo) + kPageBytes - 1) / kPageBytes * kPageBytes;

  struct Chunk {
    std::atomic<std::uint64_t> marks{0};
    typename Platform::Mapping mapping;
    std::byte* rings = nullptr;  // then the memos
    std::array<Slot, kSlotsPerChunk> slots;
  };
  static inline constinit char type_ = 0;  // its address names the traits type

  explicit SlotArena(std::uint64_t fork_count) : fork_count_(fork_count) {}

  [[nodiscard]] std::size_t ChunkBytes() const {
    return (ring_bytes_ + kMemoBytes) * kSlotsPerChunk;
  }

  void SetRingBytes(std::size_t ring_bytes) {
    if (ring_bytes == ring_bytes_) return;
    for (std::size_t i = 0; i < chunk_count_; ++i) {
      Chunk& chunk = *chunks_[i].load(std::memory_order_relaxed);
      if (chunk.rings != nullptr) Platform::UnmapMemory(chunk.mapping);
      chunk.rings = nullptr;
    }
    ring_bytes_ = ring_bytes;
  }

  std::uint8_t number_ = 0;
  const std::uint64_t fork_count_;
  std::size_t ring_bytes_ = 0;
  std::size_t chunk_count_ = 0;
  std::array<std::atomic<Chunk*>, kMaxChunks> chunks_{};
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
