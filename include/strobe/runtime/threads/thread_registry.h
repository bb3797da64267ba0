// ThreadRegistry: which threads are free, which are live, and which have ended and wait for the
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
#include "strobe/runtime/channels/channel_arena.h"
#include "strobe/runtime/threads/registered_thread.h"
#include "strobe/runtime/threads/thread_table.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Thread-safe. Owns the RegisteredThreads. One goes from free to live when a thread registers, and
// back when the registration ends. It is free at once while no collector runs. Else it is retired
// until the collector has drained its last records.
template <class Traits>
class ThreadRegistry {
 public:
  using Thread = RegisteredThread<Traits>;

  ThreadRegistry(std::size_t max_threads, std::size_t ring_bytes)
      : max_threads_(max_threads), ring_bytes_(ring_bytes), blocks_(ring_bytes) {}
  ThreadRegistry(const ThreadRegistry&) = delete;
  ThreadRegistry& operator=(const ThreadRegistry&) = delete;

  // Returns a live thread for the calling thread. ResourceExhausted at the limit of threads, arenas
  // or memory. std::bad_alloc leaves all as it was.
  absl::StatusOr<Thread*> Register(const ThreadInfo& info, std::string name) {
    return Register(info, std::move(name), [](Thread& /*thread*/) {});
  }
  // Also calls prepare(thread), before any session can attach the thread.
  template <class Prepare>
  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved
  absl::StatusOr<Thread*> Register(const ThreadInfo& info, std::string name, Prepare prepare) {
    const std::lock_guard lock(mutex_);
    if (absl::Status status = MakeRoom(); !status.ok()) return status;
    Thread* thread = TakeFree();
    SampleChannel<Traits>& channel = *thread->channel;
    channel.stack = info.stack;
    channel.thread_id = info.id;
    channel.context.Clear();
    thread->name = std::move(name);
    thread->begin_ns = typename Traits::Clock().MonotonicNs();
    thread->end_ns = 0;
    prepare(*thread);
    BecomeLive(thread);
    return thread;
  }

  // Makes the thread with that index live, for a thread of another process whose channel it is: see
  // AdoptsChannels. FailedPrecondition if that thread is live, retired or shared; ResourceExhausted
  // at the limit of arenas or memory.
  // NOLINTNEXTLINE(performance-unnecessary-value-param): moved
  absl::StatusOr<Thread*> Adopt(std::uint32_t index, std::string name, std::int64_t begin_ns) {
    const std::lock_guard lock(mutex_);
    if (absl::Status status = OpenLocked(); !status.ok()) return status;
    while (blocks_.size() <= index) {
      if (absl::Status status = Grow(); !status.ok()) return status;
    }
    Thread* const thread = blocks_.At(index);
    if (std::erase(free_, thread) == 0)
      return absl::FailedPreconditionError("the thread of that index is in use");
    if constexpr (Thread::kIsForeign) thread->identity.thread_id = thread->channel->thread_id;
    thread->name = std::move(name);
    thread->begin_ns = begin_ns;
    thread->end_ns = 0;
    BecomeLive(thread);
    return thread;
  }

  // Ends the registration of a thread that has been detached. Returns true if the thread was the
  // last live one and the owner is gone.
  bool Unregister(Thread* thread) {
    const std::lock_guard lock(mutex_);
    thread->is_ending.store(true, std::memory_order_release);  // no session attaches a free thread
    live_[thread->live_index] = live_.back();
    live_[thread->live_index]->live_index = thread->live_index;
    live_.pop_back();
    ++ended_count_;
    if (is_collecting_) {
      retired_.push_back(thread);
    } else {
      Free(thread);
    }
    return is_orphan_ && live_.empty();
  }

  // The owner calls this at its end. Returns the number of live threads. If there are any, the last
  // Unregister returns true.
  std::size_t Orphan() {
    const std::lock_guard lock(mutex_);
    is_orphan_ = true;
    return live_.size();
  }

  // The threads that have ended and wait for the collector, oldest first. The collector drains
  // them, and then gives the first `count` back.
  std::vector<Thread*> CopyRetired() {
    const std::lock_guard lock(mutex_);
    return retired_;
  }
  void ReclaimRetired(std::size_t count) {
    const std::lock_guard lock(mutex_);
    for (std::size_t i = 0; i < count; ++i) Free(retired_[i]);
    retired_.erase(retired_.begin(), retired_.begin() + static_cast<std::ptrdiff_t>(count));
  }

  // Gives back those of them for which has_drained(thread): where another process drains them.
  template <class HasDrained>
  void ReclaimIf(const HasDrained& has_drained) {
    const std::lock_guard lock(mutex_);
    std::erase_if(retired_, [&](Thread* thread) {
      if (!has_drained(*thread)) return false;
      Free(thread);
      return true;
    });
  }

  // From now on a thread that ends waits for the collector.
  void BeginCollecting() {
    const std::lock_guard lock(mutex_);
    is_collecting_ = true;
  }
  // From now on a thread that ends is free at once. Calls finish(thread) for each live or retired
  // thread, while no thread can come or go, and for the shared threads.
  template <class Finish>
  void EndCollecting(Finish&& finish) {
    const std::lock_guard lock(mutex_);
    is_collecting_ = false;
    for (Thread* thread : retired_) {
      finish(*thread);
      Free(thread);
    }
    retired_.clear();
    for (Thread* thread : live_) finish(*thread);
    for (Thread* thread : shared_) finish(*thread);
  }

  // Gives back the memory of free threads that no thread has had since the last call.
  void DiscardIdle() {
    VisitInBatches(free_, [this](Thread& thread) {
      if (ChannelArena<Traits>::IsLongIdle(*thread.channel)) arena()->Discard(thread.index());
    });
  }
  // After EndCollecting: gives back the memory of all threads, except where a capture has not ended
  // yet.
  void DiscardAll() {
    const auto discard = [this](Thread& thread) {
      if (!thread.channel->is_capturing.load(std::memory_order_seq_cst))
        arena()->Discard(thread.index());
    };
    VisitInBatches(free_, discard);
    VisitInBatches(live_, discard);
    VisitInBatches(shared_, discard);
  }

  // Guards whether the thread is attached. All sessions share it, because a thread may still use an
  // earlier session when a later one runs.
  std::mutex& ControlMutex(const Thread& thread) {
    return control_mutexes_[thread.index() % kControlMutexes];
  }

  // The oldest record in the thread's ring; empty if there is none. Reads nothing but the ring's
  // memory, whatever another process writes. Used by the collector.
  std::span<const std::byte> PeekRecord(Thread& thread) const {
    if constexpr (AdoptsChannels<typename Traits::Platform>) {
      return thread.channel->ring.PeekIn(arena()->RingMemory(thread.index()));
    } else {
      return thread.channel->ring.Peek();
    }
  }
  // As many bytes of the ring are in use. At most ring_bytes.
  [[nodiscard]] std::size_t UsedBytes(const Thread& thread) const {
    return std::min(thread.channel->ring.used_bytes(), ring_bytes_);
  }

  // Counts a registration that has failed, in Register or in its caller.
  void CountRefused() {
    const std::lock_guard lock(mutex_);
    ++refused_;
  }

  // Copies the live threads. A thread may end meanwhile: a visitor takes its control mutex and
  // checks that it is attached.
  void CopyLive(std::vector<Thread*>& threads) {
    const std::lock_guard lock(mutex_);
    threads = live_;
  }

  // The ids of the threads that are registered now.
  [[nodiscard]] std::vector<std::uint64_t> LiveThreadIds() {
    const std::lock_guard lock(mutex_);
    std::vector<std::uint64_t> ids;
    ids.reserve(live_.size());
    for (const Thread* thread : live_) ids.push_back(thread->thread_id());
    return ids;
  }

  // Copies the live threads, those that have ended and wait for the collector, and the shared
  // threads.
  void CopyAll(std::vector<Thread*>& threads) {
    const std::lock_guard lock(mutex_);
    threads = live_;
    threads.insert(threads.end(), retired_.begin(), retired_.end());
    threads.insert(threads.end(), shared_.begin(), shared_.end());
  }

  // The system's numbers of these threads; of one that has gone since and come back as another,
  // that one's.
  std::vector<std::uint64_t> IdsOf(const std::vector<Thread*>& threads) {
    std::vector<std::uint64_t> ids;
    ids.reserve(threads.size());
    VisitInBatches(threads, [&](const Thread& thread) { ids.push_back(thread.thread_id()); });
    return ids;
  }

  [[nodiscard]] std::size_t live_count() {
    const std::lock_guard lock(mutex_);
    return live_.size();
  }

  void AddTo(Stats& stats) {
    const std::lock_guard lock(mutex_);
    ended_.AddTo(stats);
    for (const Thread* thread : live_) {
      thread->channel->counters.AddTo(stats);
      const TimerKind timer = thread->timer_kind.load(std::memory_order_relaxed);
      stats.threads_on_timers += timer == TimerKind::kPeriodic ? 1 : 0;
      stats.threads_on_random_timers += timer == TimerKind::kRandom ? 1 : 0;
      stats.threads_blocking += thread->blocks_signal.load(std::memory_order_relaxed) ? 1 : 0;
      // Pages are committed when touched; a ring that is used at all is counted whole.
      if (thread->channel->holds_memory()) stats.memory_bytes += ring_bytes_;
    }
    for (const Thread* thread : retired_) thread->channel->counters.AddTo(stats);
    for (const Thread* thread : shared_) {
      thread->channel->counters.AddTo(stats);
      if (thread->channel->holds_memory()) stats.memory_bytes += ring_bytes_;
    }
    stats.threads_registered = live_.size();
    stats.threads_ended = ended_count_;
    stats.threads_refused = refused_;
    stats.memory_bytes += blocks_.memory_bytes();
  }

  // See ThreadTable. Open makes the shared threads, too. Register opens the arena.
  ChannelArena<Traits>* arena() const { return blocks_.arena(); }
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
  // Takes the mutex for each batch, because threads that register wait for it. May leave out
  // threads that come or go meanwhile.
  template <class Visitor>
  void VisitInBatches(const std::vector<Thread*>& threads, Visitor visit) {
    for (std::size_t first = 0;; first += kBatch) {
      const std::lock_guard lock(mutex_);
      if (first >= threads.size()) return;
      for (std::size_t i = first; i < std::min(first + kBatch, threads.size()); ++i)
        visit(*threads[i]);
    }
  }

  absl::Status OpenLocked() {
    absl::Status status = blocks_.Open();
    return status.ok() && shared_.size() != ChannelArena<Traits>::kSharedChannels ? Grow() : status;
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

  // Makes further threads, which are free. The first ones are the shared threads.
  absl::Status Grow() {
    MakeRoomFor(blocks_.size() + ThreadTable<Traits>::kBlockThreads);
    shared_.reserve(ChannelArena<Traits>::kSharedChannels);
    const absl::StatusOr<std::span<Thread>> threads = blocks_.Grow();
    if (!threads.ok()) return threads.status();
    for (std::size_t i = threads->size(); i-- > 0;) free_.push_back(&(*threads)[i]);
    while (shared_.size() != ChannelArena<Traits>::kSharedChannels) Share(*TakeFree());
    return absl::OkStatus();
  }

  void BecomeLive(Thread* thread) {
    thread->live_index = static_cast<std::uint32_t>(live_.size());
    live_.push_back(thread);
    thread->is_ending.store(false, std::memory_order_release);
  }

  Thread* TakeFree() {
    Thread* const thread = free_.back();
    free_.pop_back();
    thread->channel->ring.Reset(arena()->RingMemory(thread->index()));
    return thread;
  }

  void Share(Thread& thread) {
    thread.is_shared = true;
    thread.channel->stack = {};
    thread.channel->thread_id = 0;
    shared_.push_back(&thread);
    thread.is_ending.store(false, std::memory_order_release);
  }

  // Reserves room for that many threads in each list, so that the end of a registration needs no
  // memory.
  void MakeRoomFor(std::size_t threads) {
    for (std::vector<Thread*>* list : {&free_, &live_, &retired_}) {
      if (list->capacity() < threads) list->reserve(std::max(threads, 2 * list->capacity()));
    }
  }

  void Free(Thread* thread) {
    arena()->Unmark(thread->index());  // a late capture may have left a mark
    ended_.Add(thread->channel->counters);
    thread->channel->counters.Clear();
    thread->name.clear();
    free_.push_back(thread);
    if constexpr (AdoptsChannels<typename Traits::Platform>)
      Traits::Platform::GiveBack(thread->index());
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
  ThreadTable<Traits> blocks_;
  std::vector<Thread*> free_;
  std::vector<Thread*> live_;
  std::vector<Thread*> retired_;
  std::vector<Thread*> shared_;  // by the threads that are not registered
  std::uint64_t ended_count_ = 0;
  std::uint64_t refused_ = 0;
  bool is_collecting_ = false;
  bool is_orphan_ = false;
  Ended ended_;
};

}  // namespace internal
}  // namespace strobe
