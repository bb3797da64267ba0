// PolledStacks: finds the stacks that polled threads are at, and adds weights to them.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/stack.h"
#include "strobe/platform/platform.h"
#include "strobe/runtime/code/loaded_code.h"
#include "strobe/runtime/drain/channel_drain.h"
#include "strobe/runtime/drain/collector_counters.h"
#include "strobe/runtime/polls/wait_frame_pointers.h"
#include "strobe/runtime/polls/wait_walk.h"
#include "strobe/runtime/threads/provider_view.h"
#include "strobe/runtime/threads/thread_probes.h"
#include "strobe/runtime/threads/thread_registry.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The most CPU time that a thread needs to return from the signal handler and to wait again. The
// capture notes the CPU clock inside the handler, so one advance up to this much does not mean that
// the thread ran. A thread that did run for less than this in that interval, and now waits
// elsewhere, keeps the earlier stack until it runs again.
inline constexpr std::int64_t kReturnCostNs = 50'000;

// How often a walk is tried whose thread runs meanwhile.
inline constexpr int kWalkTries = 2;
// The most tables that are built for one walk. The next poll goes on where this one gives up.
inline constexpr int kMaxBuildsOfWalk = 64;

// A thread is interrupted only if its stack cannot be known otherwise:
// * It has not run since its stack was found last: the stack is the same.
// * It waits, and the system tells where (see ObservesWaits): its stack is walked from outside. The
//   thread's CPU clock stands still meanwhile, so all that was read belongs together.
// * Such a walk does not know the frame pointer, and some stacks need it. Then the thread is
//   interrupted once, the capture notes the frame pointer, and later walks at that place have it.
// * It runs, or the system does not tell where it waits, or does not let its stack be read: it is
//   interrupted.
// Used by the collector.
template <class Traits>
class PolledStacks {
 public:
  using Thread = RegisteredThread<Traits>;
  using Platform = typename Traits::Platform;

  // A poll of an attached thread.
  struct Poll {
    Thread& thread;
    std::unique_lock<std::mutex>& lock;  // holds the thread's control mutex
    ProviderView<Traits>& view;          // the thread, as provider number `provider` sees it
    std::size_t provider;
    std::int64_t weight;
    const typename Platform::Instant& since_wake;  // began when the calling thread woke
  };

  // All arguments must outlive this object.
  PolledStacks(ThreadRegistry<Traits>& registry, LoadedCode<Traits>& code,
               CollectorCounters& counters, ChannelDrain<Traits>& drain,
               ThreadProbes<Traits>& probes)
      : registry_(registry), code_(code), counters_(counters), drain_(drain), probes_(probes) {}

  // Adds the weight to the stack that the thread is at. May release the lock for some time.
  // `known_cpu_ns`: the thread's CPU clock, if the thread is taken not to have run since; else -1.
  // A record since then shows that the thread has run. Returns what the CPU clock reads.
  std::int64_t Add(const Poll& poll, std::int64_t known_cpu_ns) {
    const bool is_known = known_cpu_ns >= 0 && !poll.thread.has_new_records;
    poll.thread.has_new_records = false;
    const std::int64_t cpu_ns = is_known ? known_cpu_ns : poll.view.CpuTimeNs();
    Last& last = LastOf(poll.thread);
    if (!is_known && cpu_ns != last.cpu_ns) last.cpu_ns = -1;
    if (IsAtLast(last, cpu_ns) && ExtendLast(poll)) return cpu_ns;
    if constexpr (ObservesWaits<Platform>) {
      return AddFromOutside(poll);
    } else {
      return AddByCapture(poll, DrainAt(poll), /*waits=*/false, nullptr);
    }
  }

  // True if unwind tables were built since the last call.
  bool TakeBuilt() { return std::exchange(has_built_, false); }

  // Forgets what is known of a thread whose registration has ended, or that is attached anew.
  void Forget(const Thread& thread) {
    const std::size_t at = thread.index();
    if (at < lasts_.size()) lasts_[at] = {};
  }

 private:
  using Counter = std::atomic<std::uint64_t>;

  // What is known of one thread.
  struct Last {
    // The CPU clock at which the thread was at the intake's last stack, and has stayed since; -1 if
    // it may have run.
    std::int64_t cpu_ns = -1;
    bool is_wait = false;           // the last poll found the thread waiting
    std::int64_t note_cpu_ns = -1;  // of the last recorded note that was compared with the clock
    std::unique_ptr<WaitFramePointers> frame_pointers;  // if a walk has needed one
  };
  enum class Outcome : std::uint8_t { kAdded, kCut, kMoved, kTableWasMissing, kHidden };

  Last& LastOf(const Thread& thread) {
    const std::size_t at = thread.index();
    if (at >= lasts_.size()) lasts_.resize(at + 1);
    return lasts_[at];
  }
  static bool IsAtLast(const Last& last, std::int64_t cpu_ns) {
    return cpu_ns >= 0 && cpu_ns == last.cpu_ns;
  }
  // Drains the thread; it may be detached afterwards. Returns what the CPU clock read before:
  // records that come later belong to a thread that has run since.
  std::int64_t DrainAt(const Poll& poll) {
    const std::int64_t cpu_ns = poll.view.CpuTimeNs();
    poll.lock.unlock();
    poll.lock = drain_.Drain(poll.thread);
    return cpu_ns;
  }

  // If memory runs out, another stack takes the weight.
  bool ExtendLast(const Poll& poll) {
    bool is_extended = false;
    static_cast<void>(counters_.HasMemoryFor([&] {
      is_extended = drain_.ExtendLast(poll.thread, poll.provider, poll.weight, StillWaits(poll));
    }));
    return is_extended;
  }

  // True if a thread whose CPU clock stands still waits. A clock that advances by ticks may also
  // stand still while the thread runs.
  bool StillWaits(const Poll& poll) {
    return Platform::kHasFineCpuClocks || LastOf(poll.thread).is_wait ||
           probes_.Of(poll.thread).Poll() == ThreadPoll::kHasNotRun;
  }

  // Adds the weight to the last stack if that is of a capture which the thread has only returned
  // from. Else interrupts the thread, and counts that. `waits` if the system says that the thread
  // waits. Returns `cpu_ns`, the CPU clock.
  std::int64_t AddByCapture(const Poll& poll, std::int64_t cpu_ns, bool waits, Counter* counter) {
    if (!poll.thread.is_attached) return cpu_ns;
    Last& last = LastOf(poll.thread);
    SampleChannel<Traits>& channel = *poll.thread.channel;
    // The note of a capture without a record belongs to no stack.
    const bool is_recorded = !channel.wants_note.load(std::memory_order_acquire);
    const std::int64_t note_cpu_ns = channel.note.cpu_ns.load(std::memory_order_acquire);
    if (is_recorded && note_cpu_ns != last.note_cpu_ns) {
      last.note_cpu_ns = note_cpu_ns;
      last.cpu_ns = note_cpu_ns >= cpu_ns - kReturnCostNs ? cpu_ns : -1;
    }
    if (!poll.view.has_request() && IsAtLast(last, cpu_ns) && ExtendLast(poll)) return cpu_ns;
    if (counter != nullptr) counter->fetch_add(1, std::memory_order_relaxed);
    channel.wants_note.store(true, std::memory_order_relaxed);
    bool is_captured = false;
    // A thread that is stopped tells whether it waits.
    if constexpr (Platform::kCopiesStacks && Traits::Providers::kFindsWaits) {
      is_captured = poll.view.Request(poll.weight, /*was_running=*/true);
      waits = !is_captured;
    }
    last.is_wait = waits;
    poll.thread.is_wait_interrupted = waits;
    if (!is_captured) poll.view.Request(poll.weight, /*was_running=*/false);
    return cpu_ns;
  }

  // Adds the weight by what the system tells of the thread. Returns what the CPU clock reads.
  std::int64_t AddFromOutside(const Poll& poll) {
    using Kind = ThreadActivity::Kind;
    for (int tries = 0, builds = 0; tries < kWalkTries && builds < kMaxBuildsOfWalk;) {
      const std::int64_t cpu_ns = DrainAt(poll);
      if (!poll.thread.is_attached) return cpu_ns;
      auto& probe = probes_.Of(poll.thread);
      const ThreadActivity activity = probe.Observe();
      if (activity.kind == Kind::kUnknown)
        return AddByCapture(poll, cpu_ns, /*waits=*/false, &counters_.waits_hidden);
      if (activity.kind == Kind::kReady) {
        // A thread that has just been woken waits for a CPU, and an interruption would end its
        // wait.
        if (poll.view.CpuTimeNs() == cpu_ns && !probe.WasDisplaced(poll.since_wake)) break;
        poll.thread.is_wait_interrupted = false;
        poll.view.Request(poll.weight, /*was_running=*/true);
        return cpu_ns;
      }
      // A capture may wait, for memory.
      if (poll.thread.channel->is_capturing.load(std::memory_order_acquire)) break;
      switch (AddWait(poll, activity, cpu_ns)) {
        case Outcome::kAdded: return cpu_ns;
        case Outcome::kHidden:
          return AddByCapture(poll, cpu_ns, /*waits=*/true, &counters_.waits_hidden);
        case Outcome::kCut:
          return AddByCapture(poll, cpu_ns, /*waits=*/true, &counters_.waits_interrupted);
        case Outcome::kMoved: ++tries; break;
        case Outcome::kTableWasMissing: ++builds; break;
      }
    }
    poll.view.AddRequest(poll.weight);
    return -1;
  }

  // Adds the weight to the stack of a thread that waits, if a walk from outside finds that stack.
  // `cpu_ns` is what the CPU clock read before the system told of the wait.
  Outcome AddWait(const Poll& poll, const ThreadActivity& wait, std::int64_t cpu_ns) {
    SampleChannel<Traits>& channel = *poll.thread.channel;
    Last& last = LastOf(poll.thread);
    TakeNote(channel, last);
    const auto walked = walk_.Run(wait, channel.stack, code_.tables(),
                                  registry_.arena()->max_frames.load(std::memory_order_relaxed),
                                  last.frame_pointers.get());
    if (walked == WaitWalk<Traits>::Outcome::kMissingTable) {
      Build(walk_.missing_pc(), poll.lock);
      return Outcome::kTableWasMissing;
    }
    const bool is_whole = walked == WaitWalk<Traits>::Outcome::kWhole;
    // Before the clock: a capture that does not see this makes the clock advance.
    if (is_whole) channel.memo_is_stale.store(true, std::memory_order_seq_cst);
    if (poll.view.CpuTimeNs() != cpu_ns) return Outcome::kMoved;
    if (walked == WaitWalk<Traits>::Outcome::kUnreadable) return Outcome::kHidden;
    if (!is_whole) {
      RequestFramePointer(last, cpu_ns);
      return Outcome::kCut;
    }
    if (last.frame_pointers != nullptr) last.frame_pointers->Confirm(walk_.place(), walk_.caller());
    AddStack(poll, last, cpu_ns);
    return Outcome::kAdded;
  }

  // Requests that have not been served yet are for this stack, too. If memory runs out, another
  // stack takes the weight.
  void AddStack(const Poll& poll, Last& last, std::int64_t cpu_ns) {
    const std::int64_t weight = poll.weight + poll.view.TakeRequests();
    poll.thread.is_wait_interrupted = false;
    const bool is_added = counters_.HasMemoryFor(
        [&] { drain_.AddStack(poll.thread, poll.provider, weight, walk_.end(), walk_.frames()); });
    if (!is_added) return poll.view.AddRequest(weight);
    last.cpu_ns = cpu_ns;
    last.is_wait = true;
    counters_.waits_walked.fetch_add(1, std::memory_order_relaxed);
    counters_.wait_ends[static_cast<std::size_t>(walk_.end())].fetch_add(1,
                                                                         std::memory_order_relaxed);
  }

  // The thread is interrupted now: the capture notes the frame pointer that the walk lacks.
  void RequestFramePointer(Last& last, std::int64_t cpu_ns) {
    if (walk_.place() == WaitPlace()) return;
    if (last.frame_pointers == nullptr) last.frame_pointers = std::make_unique<WaitFramePointers>();
    last.frame_pointers->Request(walk_.place(), cpu_ns);
  }

  // Takes the answer to such a request.
  static void TakeNote(const SampleChannel<Traits>& channel, Last& last) {
    if (last.frame_pointers == nullptr) return;
    const std::int64_t cpu_ns = channel.note.cpu_ns.load(std::memory_order_acquire);
    const CaptureNote::Registers registers =
        CaptureNote::Unpack(channel.note.registers.load(std::memory_order_acquire),
                            last.frame_pointers->requested_sp());
    last.frame_pointers->Answer(cpu_ns, registers.sp, registers.fp);
  }

  // Builds a table, without the lock: see ChannelDrain::Drain.
  void Build(Address missing_pc, std::unique_lock<std::mutex>& lock) {
    lock.unlock();
    code_.RefreshIfChanged(drain_.intake());
    code_.Build(missing_pc);
    has_built_ = true;
    lock.lock();
  }

  ThreadRegistry<Traits>& registry_;
  LoadedCode<Traits>& code_;
  CollectorCounters& counters_;
  ChannelDrain<Traits>& drain_;
  ThreadProbes<Traits>& probes_;
  WaitWalk<Traits> walk_;
  std::vector<Last> lasts_;  // by the thread's index
  bool has_built_ = false;
};

}  // namespace internal
}  // namespace strobe
