// ThreadRegistry: which slots are free, which are live, and which have ended and wait for the
// collector.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "strobe/base/visibility.h"
#include "strobe/core/stats.h"
#include "strobe/core/thread_info.h"
#include "strobe/runtime/channels/slot_arena.h"
#include "strobe/runtime/threads/registered_thread.h"
#include "strobe/runtime/threads/slot_blocks.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// Thread-safe. Owns the slots, which are RegisteredThreads. A slot goes from free to live when a
// thread registers, and back when the registration ends. It is free at once while no collector
// runs. Else it is retired until the collector has drained its last records.
template <class Traits>
class ThreadRegistry {
 public:
  using Slot = RegisteredThread<Traits>;

  ThreadRegistry(std::size_t max_threads, std::size_t ring_bytes)
      : max_threads_(max_threads), ring_bytes_(ring_bytes), blocks_(ring_bytes) {}
  ThreadRegistry(const ThreadRegistry&) = delete;
  ThreadRegistry& operator=(const ThreadRegistry&) = delete;

  // Returns a live slot for the calling thread. ResourceExhausted at the limit of threads, arenas
  // or memory. std::bad_alloc leaves all as it was.
  absl::StatusOr<Slot*> Register(const ThreadInfo& info, std::string name) {
    return Register(info, std::move(name), [](Slot& /*slot*/) {});
  }
  // Also calls prepare(slot), before any session can attach the slot.
  template <class Prepare>
  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved
  absl::StatusOr<Slot*> Register(const ThreadInfo& info, std::string name, Prepare prepare) {
    const std::lock_guard lock(mutex_);
    if (absl::Status status = MakeRoom(); !status.ok()) return status;
    Slot* slot = TakeFree();
    SampleChannel<Traits>& channel = *slot->channel;
    channel.stack = info.stack;
    channel.thread_id = info.id;
    channel.context.Clear();
    slot->name = std::move(name);
    slot->begin_ns = typename Traits::Clock().MonotonicNs();
    slot->end_ns = 0;
    prepare(*slot);
    BecomeLive(slot);
    return slot;
  }

  // Makes the slot with that index live, for a thread of another process whose channel it is: see
  // AdoptsChannels. FailedPrecondition if that slot is live, retired or shared; ResourceExhausted
  // at the limit of arenas or memory.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved
  absl::StatusOr<Slot*> Adopt(std::uint32_t index, std::string name, std::int64_t begin_ns) {
    const std::lock_guard lock(mutex_);
    if (absl::Status status = OpenLocked(); !status.ok()) return status;
    while (blocks_.size() <= index) {
      if (absl::Status status = Grow(); !status.ok()) return status;
    }
    Slot* const slot = blocks_.At(index);
    if (std::erase(free_, slot) == 0)
      return absl::FailedPreconditionError("the slot of that index is in use");
    if constexpr (Slot::kIsForeign) slot->identity.thread_id = slot->channel->thread_id;
    slot->name = std::move(name);
    slot->begin_ns = begin_ns;
    slot->end_ns = 0;
    BecomeLive(slot);
    return slot;
  }

  // Ends the registration of a slot that has been detached. Returns true if the slot was the last
  // live one and the owner is gone.
  bool Unregister(Slot* slot) {
    const std::lock_guard lock(mutex_);
    slot->is_ending.store(true, std::memory_order_release);  // no session attaches a free slot
    live_[slot->live_index] = live_.back();
    live_[slot->live_index]->live_index = slot->live_index;
    live_.pop_back();
    ++ended_count_;
    if (is_collecting_) {
      retired_.push_back(slot);
    } else {
      Free(slot);
    }
    return is_orphan_ && live_.empty();
  }

  // The owner calls this at its end. Returns the number of live slots. If there are any, the last
  // Unregister returns true.
  std::size_t Orphan() {
    const std::lock_guard lock(mutex_);
    is_orphan_ = true;
    return live_.size();
  }

  // The slots that have ended and wait for the collector, oldest first. The collector drains them,
  // and then gives the first `count` back.
  std::vector<Slot*> CopyRetired() {
    const std::lock_guard lock(mutex_);
    return retired_;
  }
  void ReclaimRetired(std::size_t count) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) Free(retired_[i]);
    retired_.erase(retired_.begin(), retired_.begin() + static_cast<std::ptrdiff_t>(count));
  }

  // Gives back those of them for which has_drained(slot): where another process drains them.
  template <class HasDrained>
  void ReclaimIf(const HasDrained& has_drained) {
    const std::lock_guard lock(mutex_);
    std::erase_if(retired_, [&](Slot* slot) {
      if (!has_drained(*slot)) return false;
      Free(slot);
      return true;
    });
  }

  // From now on a slot that ends waits for the collector.
  void BeginCollecting() {
    const std::lock_guard lock(mutex_);
    is_collecting_ = true;
  }
  // From now on a slot that ends is free at once. Calls finish(slot) for each live or retired slot,
  // while no slot can come or go, and for the shared slots.
  template <class Finish>
  void EndCollecting(Finish&& finish) {
    const std::lock_guard lock(mutex_);
    is_collecting_ = false;
    for (Slot* slot : retired_) {
      finish(*slot);
      Free(slot);
    }
    retired_.clear();
    for (Slot* slot : live_) finish(*slot);
    for (Slot* slot : shared_) finish(*slot);
  }

  // Gives back the memory of free slots that no thread has had since the last call.
  void DiscardIdle() {
    VisitInBatches(free_, [this](Slot& slot) {
      if (SlotArena<Traits>::IsLongIdle(*slot.channel)) arena()->Discard(slot.index());
    });
  }
  // After EndCollecting: gives back the memory of all slots, except where a capture has not ended
  // yet.
  void DiscardAll() {
    const auto discard = [this](Slot& slot) {
      if (!slot.channel->is_capturing.load(std::memory_order_seq_cst))
        arena()->Discard(slot.index());
    };
    VisitInBatches(free_, discard);
    VisitInBatches(live_, discard);
    VisitInBatches(shared_, discard);
  }

  // Guards whether the slot is attached. All sessions share it, because a thread may still use an
  // earlier session when a later one runs.
  std::mutex& ControlMutex(const Slot& slot) {
    return control_mutexes_[slot.index() % kControlMutexes];
  }

  // The oldest record in the slot's ring; empty if there is none. Reads nothing but the ring's
  // memory, whatever another process writes. Used by the collector.
  std::span<const std::byte> PeekRecord(Slot& slot) const {
    if constexpr (AdoptsChannels<typename Traits::Platform>) {
      return slot.channel->ring.PeekIn(arena()->RingMemory(slot.index()));
    } else {
      return slot.channel->ring.Peek();
    }
  }
  // As many bytes of the ring are in use. At most ring_bytes.
  [[nodiscard]] std::size_t UsedBytes(const Slot& slot) const {
    return std::min(slot.channel->ring.used_bytes(), ring_bytes_);
  }

  // Counts a registration that has failed, in Register or in its caller.
  void CountRefused() {
    const std::lock_guard lock(mutex_);
    ++refused_;
  }

  // Copies the live slots. A slot may end meanwhile: a visitor takes its control mutex and checks
  // that it is attached.
  void CopyLive(std::vector<Slot*>& slots) {
    const std::lock_guard lock(mutex_);
    slots = live_;
  }

  // The ids of the threads that are registered now.
  [[nodiscard]] std::vector<std::uint64_t> LiveThreadIds() {
    const std::lock_guard lock(mutex_);
    std::vector<std::uint64_t> ids;
    ids.reserve(live_.size());
    for (const Slot* slot : live_) ids.push_back(slot->thread_id());
    return ids;
  }

  // Copies the live slots, those that have ended and wait for the collector, and the shared slots.
  void CopyAll(std::vector<Slot*>& slots) {
    const std::lock_guard lock(mutex_);
    slots = live_;
    slots.insert(slots.end(), retired_.begin(), retired_.end());
    slots.insert(slots.end(), shared_.begin(), shared_.end());
  }

  [[nodiscard]] std::size_t live_count() {
    const std::lock_guard lock(mutex_);
    return live_.size();
  }

  void AddTo(Stats& stats) {
    const std::lock_guard lock(mutex_);
    ended_.AddTo(stats);
    for (const Slot* slot : live_) {
      slot->channel->counters.AddTo(stats);
      const TimerKind timer = slot->timer_kind.load(std::memory_order_relaxed);
      stats.threads_on_timers += timer == TimerKind::kPeriodic ? 1 : 0;
      stats.threads_on_random_timers += timer == TimerKind::kRandom ? 1 : 0;
      stats.threads_blocking += slot->blocks_signal.load(std::memory_order_relaxed) ? 1 : 0;
      // Pages are committed when touched; a ring that is used at all is counted whole.
      if (slot->channel->holds_memory()) stats.memory_bytes += ring_bytes_;
    }
    for (const Slot* slot : retired_) slot->channel->counters.AddTo(stats);
    for (const Slot* slot : shared_) {
      slot->channel->counters.AddTo(stats);
      if (slot->channel->holds_memory()) stats.memory_bytes += ring_bytes_;
    }
    stats.threads_registered = live_.size();
    stats.threads_ended = ended_count_;
    stats.threads_refused = refused_;
    stats.memory_bytes += blocks_.memory_bytes();
  }

  // See SlotBlocks. Open makes the shared slots, too. Register opens the arena.
  SlotArena<Traits>* arena() const { return blocks_.arena(); }
  absl::Status Open() {
    const std::lock_guard lock(mutex_);
    return OpenLocked();
  }
  template <class Visitor>
  void VisitAll(Visitor&& visit) {
    blocks_.VisitAll(std::forward<Visitor>(visit));
  }
  template <class Visitor>
  void VisitMarked(Visitor&& visit) {
    blocks_.VisitMarked(std::forward<Visitor>(visit));
  }
  [[nodiscard]] bool IsCapturing() { return blocks_.IsCapturing(); }

 private:
  // Takes the mutex for each batch, because threads that register wait for it. May leave out slots
  // that come or go meanwhile.
  template <class Visitor>
  void VisitInBatches(const std::vector<Slot*>& slots, Visitor visit) {
    for (std::size_t first = 0;; first += kBatch) {
      const std::lock_guard lock(mutex_);
      if (first >= slots.size()) return;
      for (std::size_t i = first; i < std::min(first + kBatch, slots.size()); ++i) visit(*slots[i]);
    }
  }

  absl::Status OpenLocked() {
    absl::Status status = blocks_.Open();
    return status.ok() && shared_.size() != SlotArena<Traits>::kSharedSlots ? Grow() : status;
  }

  absl::Status MakeRoom() {
    if (live_.size() >= max_threads_) {
      return absl::ResourceExhaustedError("threads.max_threads: as many threads as allowed (" +
                                          std::to_string(max_threads_) + ") are registered");
    }
    absl::Status status = OpenLocked();
    if (!status.ok()) return status;
    return free_.empty() ? Grow() : absl::OkStatus();
  }

  // Makes further slots, which are free. The first ones are the shared slots.
  absl::Status Grow() {
    MakeRoomFor(blocks_.size() + SlotBlocks<Traits>::kBlockSlots);
    shared_.reserve(SlotArena<Traits>::kSharedSlots);
    const absl::StatusOr<std::span<Slot>> slots = blocks_.Grow();
    if (!slots.ok()) return slots.status();
    for (std::size_t i = slots->size(); i-- > 0;) free_.push_back(&(*slots)[i]);
    while (shared_.size() != SlotArena<Traits>::kSharedSlots) Share(*TakeFree());
    return absl::OkStatus();
  }

  void BecomeLive(Slot* slot) {
    slot->live_index = static_cast<std::uint32_t>(live_.size());
    live_.push_back(slot);
    slot->is_ending.store(false, std::memory_order_release);
  }

  Slot* TakeFree() {
    Slot* const slot = free_.back();
    free_.pop_back();
    slot->channel->ring.Reset(arena()->RingMemory(slot->index()));
    return slot;
  }

  void Share(Slot& slot) {
    slot.is_shared = true;
    slot.channel->stack = {};
    slot.channel->thread_id = 0;
    shared_.push_back(&slot);
    slot.is_ending.store(false, std::memory_order_release);
  }

  // Reserves room for that many slots in each list, so that the end of a registration needs no
  // memory.
  void MakeRoomFor(std::size_t slots) {
    for (std::vector<Slot*>* list : {&free_, &live_, &retired_}) {
      if (list->capacity() < slots) list->reserve(std::max(slots, 2 * list->capacity()));
    }
  }

  void Free(Slot* slot) {
    arena()->Unmark(slot->index());  // a late capture may have left a mark
    ended_.Add(slot->channel->counters);
    slot->channel->counters.Clear();
    slot->name.clear();
    free_.push_back(slot);
    if constexpr (AdoptsChannels<typename Traits::Platform>)
      Traits::Platform::GiveBack(slot->index());
  }

  // Counters of registrations that have ended.
  struct Ended {
    Stats stats;
    void Add(const CaptureCounters& counters) { counters.AddTo(stats); }
    void AddTo(Stats& other) const {
      for (std::size_t i = 0; i < stats.drops.size(); ++i) other.drops[i] += stats.drops[i];
      for (std::size_t i = 0; i < stats.stack_ends.size(); ++i)
        other.stack_ends[i] += stats.stack_ends[i];
      other.handler_time_ns += stats.handler_time_ns;
    }
  };

  static constexpr std::size_t kControlMutexes = 64;
  static constexpr std::size_t kBatch = 64;

  const std::size_t max_threads_;
  const std::size_t ring_bytes_;
  std::mutex mutex_;
  std::array<std::mutex, kControlMutexes> control_mutexes_;
  SlotBlocks<Traits> blocks_;
  std::vector<Slot*> free_;
  std::vector<Slot*> live_;
  std::vector<Slot*> retired_;
  std::vector<Slot*> shared_;  // by the threads that are not registered
  std::uint64_t ended_count_ = 0;
  std::uint64_t refused_ = 0;
  bool is_collecting_ = false;
  bool is_orphan_ = false;
  Ended ended_;
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
