// SlotArena: type-stable storage of slots, and all else that a late signal may still touch.
#pragma once

#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "strobe/base/cache_line.h"
#include "strobe/base/signal_safe.h"
#include "strobe/platform/capture_target.h"
#include "strobe/runtime/thread_slot.h"
#include "strobe/unwind/cfi_modules.h"
#include "strobe/unwind/text_ranges.h"
#include "strobe/unwind/unwind_table.h"
#include "strobe/unwind/walk_memo.h"

namespace strobe::internal {

// Numbers of arenas: each has a place in the static table that the handler reads. At most kMaxArenas exist at a time.
int AcquireArenaNumber();   // -1 when all are taken
void ForgetArenaNumbers();  // in a fork's child: nobody holds any

template <class Traits>
class SlotArena {
 public:
  using Slot = ThreadSlot<Traits>;
  using Platform = typename Traits::Platform;
  static constexpr std::size_t kSlotsPerChunk = 64;  // one word of marks
  static constexpr std::size_t kMaxChunks = 4096;

  // An arena that is not in use, or a new one; nullptr where kMaxArenas are. Arenas are kept for ever and used again: a signal of an ended
  // Profiler may still be on its way.
  static SlotArena* Acquire(std::size_t ring_bytes) {
    Pool& pool = GlobalPool();
    const std::lock_guard lock(pool.mutex);
    SlotArena* arena = nullptr;
    if (!pool.free.empty()) {
      arena = pool.free.back();
      pool.free.pop_back();
    } else {
      const int number = AcquireArenaNumber();
      if (number < 0) return nullptr;
      arena = new SlotArena(static_cast<std::uint8_t>(number));
    }
    arena->SetRingBytes(ring_bytes);
    return arena;
  }

  // No slot may be in use.
  static void Release(SlotArena* arena) {
    arena->cfi.reset();
    Pool& pool = GlobalPool();
    const std::lock_guard lock(pool.mutex);
    pool.free.push_back(arena);
  }

  // In a fork's child: arenas that the parent had are left behind, for the child has its own.
  static void ForgetAll() {
    Pool& pool = GlobalPool();
    new (&pool.mutex) std::mutex;  // whoever held it does not exist here
    pool.free.clear();
  }

  // The slot of that index, or nullptr. Signal-safe.
  STROBE_SIGNAL_SAFE Slot* Find(std::uint32_t index) noexcept {
    if (index >= kMaxChunks * kSlotsPerChunk) return nullptr;
    Chunk* chunk = chunks_[index / kSlotsPerChunk].load(std::memory_order_acquire);
    return chunk == nullptr ? nullptr : &chunk->slots[index % kSlotsPerChunk];
  }

  // Makes room for kSlotsPerChunk more and appends them to `free`. False where memory or the limit is reached. Under the registry's mutex.
  bool Grow(std::vector<Slot*>& free) {
    if (chunk_count_ == kMaxChunks) return false;
    auto chunk = std::make_unique<Chunk>();
    const auto first = static_cast<std::uint32_t>(chunk_count_ * kSlotsPerChunk);
    for (std::size_t i = kSlotsPerChunk; i-- > 0;) {
      Slot& slot = chunk->slots[i];
      slot.token = {.arena = number_, .provider = 0, .use = 0, .index = first + static_cast<std::uint32_t>(i)};
      slot.is_awaited = &Slot::IsAwaited;
      free.push_back(&slot);
    }
    chunks_[chunk_count_++].store(chunk.release(), std::memory_order_release);
    return true;
  }

  // The ring's memory of a slot, committed when touched; empty where it cannot be had. Under the registry's mutex.
  std::span<std::byte> RingMemory(const Slot& slot) {
    const std::uint32_t index = slot.token.index;
    Chunk& chunk = *chunks_[index / kSlotsPerChunk].load(std::memory_order_relaxed);
    if (chunk.rings == nullptr) chunk.rings = static_cast<std::byte*>(Platform::MapMemory(ChunkBytes()));
    if (chunk.rings == nullptr) return {};
    return {chunk.rings + (index % kSlotsPerChunk) * ring_bytes_, ring_bytes_};
  }

  // The memory of what a slot's walks remember, or copy of stacks that are not the thread's own; committed when touched. nullptr without
  // rings.
  WalkMemo* MemoMemory(const Slot& slot) {
    const std::uint32_t index = slot.token.index;
    std::byte* const rings = chunks_[index / kSlotsPerChunk].load(std::memory_order_relaxed)->rings;
    if (rings == nullptr) return nullptr;
    return reinterpret_cast<WalkMemo*>(rings + ring_bytes_ * kSlotsPerChunk + (index % kSlotsPerChunk) * kMemoBytes);
  }

  // Says that the slot's ring has a record. Signal-safe.
  STROBE_SIGNAL_SAFE void Mark(const Slot& slot) noexcept {
    const std::uint32_t index = slot.token.index;
    std::atomic<std::uint64_t>& marks = chunks_[index / kSlotsPerChunk].load(std::memory_order_relaxed)->marks;
    const std::uint64_t bit = std::uint64_t{1} << (index % kSlotsPerChunk);
    marks.fetch_or(bit, std::memory_order_release);
  }

  // Takes that back, for a slot that nobody captures into any more.
  void Unmark(const Slot& slot) noexcept {
    const std::uint32_t index = slot.token.index;
    const std::uint64_t bit = std::uint64_t{1} << (index % kSlotsPerChunk);
    chunks_[index / kSlotsPerChunk].load(std::memory_order_relaxed)->marks.fetch_and(~bit, std::memory_order_acquire);
  }

  // Calls visit(slot) for each slot marked since the last call.
  template <class Visitor>
  void VisitMarked(Visitor&& visit) {
    for (std::size_t i = 0; i < kMaxChunks; ++i) {
      Chunk* chunk = chunks_[i].load(std::memory_order_acquire);
      if (chunk == nullptr) return;
      if (chunk->marks.load(std::memory_order_relaxed) == 0) continue;
      std::uint64_t marks = chunk->marks.exchange(0, std::memory_order_acquire);
      for (; marks != 0; marks &= marks - 1) visit(chunk->slots[static_cast<std::size_t>(std::countr_zero(marks))]);
    }
  }

  [[nodiscard]] std::uint8_t number() const { return number_; }
  [[nodiscard]] std::size_t memory_bytes() const { return sizeof(*this) + chunk_count_ * sizeof(Chunk); }
  [[nodiscard]] std::size_t ring_bytes() const { return ring_bytes_; }

  // What captures need beside their slot. Written while no slot is active, but for the last three, which the collector keeps current.
  std::atomic<std::uint32_t> max_frames{0};
  std::atomic<std::uint32_t> module_generation{0};
  TextRanges text;
  std::atomic<const UnwindModules*> unwind_modules{nullptr};  // nullptr while no session runs

  // What `unwind_modules` is made by: the running session's. It outlives the session, so that the next one need not compile again what is
  // still loaded, but not the Profiler.
  std::optional<CfiModules> cfi;

  // Slots that a former owner made: all free.
  void AppendAll(std::vector<Slot*>& free) {
    for (std::size_t i = chunk_count_; i-- > 0;) {
      for (std::size_t j = kSlotsPerChunk; j-- > 0;) free.push_back(&chunks_[i].load(std::memory_order_relaxed)->slots[j]);
    }
  }

 private:
  static constexpr std::size_t kMemoBytes = (sizeof(WalkMemo) + kCacheLineBytes - 1) / kCacheLineBytes * kCacheLineBytes;

  struct Chunk {
    std::atomic<std::uint64_t> marks{0};
    std::byte* rings = nullptr;  // then the memos
    std::array<Slot, kSlotsPerChunk> slots;
  };
  struct Pool {
    std::mutex mutex;
    std::vector<SlotArena*> free;
  };
  static Pool& GlobalPool() {
    static auto* const pool = new Pool;
    return *pool;
  }

  explicit SlotArena(std::uint8_t number) : number_(number) {}

  [[nodiscard]] std::size_t ChunkBytes() const { return (ring_bytes_ + kMemoBytes) * kSlotsPerChunk; }

  void SetRingBytes(std::size_t ring_bytes) {
    if (ring_bytes == ring_bytes_) return;
    for (std::size_t i = 0; i < chunk_count_; ++i) {
      Chunk& chunk = *chunks_[i].load(std::memory_order_relaxed);
      if (chunk.rings != nullptr) Platform::UnmapMemory(chunk.rings, ChunkBytes());
      chunk.rings = nullptr;
    }
    ring_bytes_ = ring_bytes;
  }

  std::uint8_t number_;
  std::size_t ring_bytes_ = 0;
  std::size_t chunk_count_ = 0;
  std::array<std::atomic<Chunk*>, kMaxChunks> chunks_{};
};

}  // namespace strobe::internal
