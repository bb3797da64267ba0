// Collector: the thread that drains the rings, polls threads for the polled providers, ends
// periods, and begins and ends recordings.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>

#include "absl/status/status.h"
#include "strobe/base/visibility.h"
#include "strobe/platform/refused_thread.h"
#include "strobe/runtime/code/published_code.h"
#include "strobe/runtime/polls/idle_threads.h"
#include "strobe/runtime/session/monitor.h"
#include "strobe/runtime/session/recording_calls.h"
#include "strobe/runtime/session/session.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The shortest time between two drains, however full the rings run.
inline constexpr std::int64_t kMinDrainPeriodNs = 5'000'000;
// The longest time between two drains, however empty the rings stay; or the option, if that is
// longer. Most of a drain's cost is the collector's wake-up.
inline constexpr std::int64_t kMaxDrainPeriodNs = 1'000'000'000;
// The ring fill that the drains aim at. From one drain to the next, the time between drains grows
// by a factor of two at most.
inline constexpr double kWantedFill = 0.25;

// Returns the time to the next drain. The last one came `drain_ns` after its predecessor, and found
// the fullest ring filled to `fill`, 0 to 1.
inline std::int64_t NextDrainNs(std::int64_t drain_ns, double fill, std::int64_t option_ns) {
  const double factor = std::min(kWantedFill / std::max(fill, 1e-3), 2.0);
  const auto wanted_ns = static_cast<std::int64_t>(static_cast<double>(drain_ns) * factor);
  return std::clamp(wanted_ns, std::min(kMinDrainPeriodNs, option_ns),
                    std::max(kMaxDrainPeriodNs, option_ns));
}
// How often the collector checks that our signal handler is still installed.
inline constexpr std::int64_t kHandlerCheckPeriodNs = 1'000'000'000;

// The longest sleep that a request cannot interrupt.
inline constexpr std::int64_t kMaxSleepNs = 20'000'000;

template <class Traits>
class Collector {
 public:
  using Platform = typename Traits::Platform;

  // The owner's functions, called on the collector's thread. end_period ends the period; false
  // means that the period continues. check_handler checks the signal handler. begin_recording and
  // end_recording follow a drain. `is_whole` is false if that drain ran out of memory: the
  // recording becomes an error, because samples may be missing. A recording has begun if the call
  // has a place after begin_recording.
  struct Callbacks {
    std::function<bool()> end_period;
    std::function<void()> check_handler;
    std::function<void(RecordingCall& call, bool is_whole)> begin_recording = {};
    std::function<void(RecordingCall& call, bool is_whole)> end_recording = {};
    // After each drain; may be missing.
    std::function<void(std::int64_t now_ns)> after_drain = {};
  };

  Collector(const ProfilerOptions& options, Session<Traits>& session, CollectorCounters& counters,
            Callbacks callbacks)
      : session_(session),
        counters_(counters),
        callbacks_(std::move(callbacks)),
        option_drain_ns_(*options.collector.drain_period_ms * 1'000'000),
        export_period_ns_(static_cast<std::int64_t>(*options.exporter.period_s * 1e9)) {}

  // ResourceExhausted if the system refuses the thread, or memory runs out.
  absl::Status Begin() {
    static_cast<void>(counters_.HasMemoryFor(
        [this] { thread_ = Platform::RunOnOwnThread("strobe-collect", [this] { Run(); }); }));
    return StatusOfThread("the collector", thread_);
  }

  // Drains and ends the period now; waits for both until the deadline. Returns whether the period
  // was ended.
  bool EndPeriod(Monitor::Deadline deadline) {
    std::unique_lock lock(monitor_);
    const std::uint64_t wanted = ++periods_asked_;
    monitor_.NotifyAll();
    return monitor_.WaitFor([&] { return periods_done_ >= wanted; }, deadline) && was_period_ended_;
  }

  // Carries out a call of Record, and waits until it is done: after its duration, or when the
  // session ends. Callable from any thread. Allocates no memory on the calling thread. False if the
  // call's deadline has passed before.
  [[nodiscard]] bool Record(const std::shared_ptr<RecordingCall>& call) {
    return recording_calls_.Wait(call);
  }

  // Ends all recordings, and refuses later ones. Call it after End, and after the session has
  // drained the last records.
  void EndRecordings(bool is_whole) {
    recording_calls_.Close([&](RecordingCall& call) { callbacks_.end_recording(call, is_whole); });
  }

  // Tells the collector that a thread has come: what has been nearly empty may fill now. Callable
  // from any thread.
  void ExpectMore() {
    const std::lock_guard lock(monitor_);
    expects_more_ = true;
    if (waits_long_) monitor_.NotifyAll();
  }

  void End() {
    {
      const std::lock_guard lock(monitor_);
      is_ending_ = true;
      monitor_.NotifyAll();
    }
    thread_.Join();
  }

 private:
  // False if another process drains the channels by now.
  static bool HasChannels() {
    if constexpr (AdoptsChannels<Platform>) return Platform::HasArea();
    return true;
  }

  void Run() {
    static_cast<void>(Platform::CurrentThread());  // so that its later calls are cheap
    if constexpr (requires { Platform::WakeInTime(); }) static_cast<void>(Platform::WakeInTime());
    earlier_cpu_ns_ = counters_.cpu_ns.load(std::memory_order_relaxed);
    unsampled_process_ns_ =
        Platform::ProcessCpuTimeNs() - counters_.process_cpu_ns.load(std::memory_order_relaxed);
    Plan(clock_.MonotonicNs());
    std::unique_lock lock(monitor_);
    while (!is_ending_ && HasChannels()) {
      const typename Platform::Instant since_wake;
      const std::uint64_t asked = periods_asked_;
      const std::int64_t now_ns = clock_.MonotonicNs();
      const RecordingCalls::Calls due = recording_calls_.Due(now_ns);
      lock.unlock();
      // First, because the others take time. If no poll is planned, each wake-up calls Poll: a
      // thread that needs polls may have come.
      const bool has_come_to_work = std::exchange(has_left_cpu_, false);
      if (!has_come_to_work && (now_ns >= next_poll_ns_ || next_poll_ns_ == INT64_MAX))
        next_poll_ns_ = Poll(since_wake, now_ns);
      const bool has_left = IsWorkDue(now_ns, asked != periods_done_, due) && session_.LeaveCpu();
      const bool was_ended = DoWhatIsDue(now_ns, asked != periods_done_, due);
      if (due[0] != nullptr) next_poll_ns_ = now_ns;  // rates may have changed
      if (has_come_to_work || has_left) next_poll_ns_ = Poll(since_wake, now_ns);
      lock.lock();
      if (asked != periods_done_) {
        periods_done_ = asked;
        was_period_ended_ = was_ended;
        monitor_.NotifyAll();
      }
      if (is_ending_ || periods_asked_ != periods_done_) continue;
      if (std::exchange(expects_more_, false)) {
        drain_ns_ = std::min(drain_ns_, option_drain_ns_);
        next_drain_ns_ = std::min(next_drain_ns_, now_ns + drain_ns_);
      }
      const std::int64_t work_ns =
          std::min({next_drain_ns_, next_export_ns_, recording_calls_.due_ns()});
      // The work must not take the CPU of a thread of the program while another one is idle.
      if (work_ns < next_poll_ns_) has_left_cpu_ = session_.LeaveCpu();
      WaitUntil(lock, std::min(work_ns, next_poll_ns_));
    }
  }

  void Plan(std::int64_t now_ns) {
    next_drain_ns_ = now_ns + drain_ns_;
    next_check_ns_ = now_ns + kHandlerCheckPeriodNs;
    next_export_ns_ = now_ns + export_period_ns_;
    next_poll_ns_ = now_ns;
  }

  // Whether something is due that takes time.
  [[nodiscard]] bool IsWorkDue(std::int64_t now_ns, bool is_export_asked,
                               const RecordingCalls::Calls& due) const {
    return is_export_asked || now_ns >= std::min(next_export_ns_, next_drain_ns_) ||
           due[0] != nullptr;
  }

  // Drains, exports and checks the handler, each if it is due. Returns whether the period ended.
  bool DoWhatIsDue(std::int64_t now_ns, bool is_export_asked, const RecordingCalls::Calls& due) {
    const bool is_export_due = is_export_asked || now_ns >= next_export_ns_;
    if (now_ns >= next_drain_ns_ || is_export_due || due[0] != nullptr) {
      const double fill = DrainFor(due);
      drain_ns_ = NextDrainNs(drain_ns_, fill, option_drain_ns_);
      // Drains take at most half of the time, however many records there are.
      const std::int64_t done_ns = clock_.MonotonicNs();
      next_drain_ns_ = std::max(now_ns + drain_ns_, done_ns + (done_ns - now_ns));
      CountCpu();
      if (callbacks_.after_drain) callbacks_.after_drain(now_ns);
    }
    bool was_ended = false;
    if (is_export_due) {
      was_ended = callbacks_.end_period();
      next_export_ns_ = now_ns + export_period_ns_;
    }
    if (now_ns >= next_check_ns_) {
      static_cast<void>(counters_.HasMemoryFor(callbacks_.check_handler));
      next_check_ns_ = now_ns + kHandlerCheckPeriodNs;
    }
    return was_ended;
  }

  void CountCpu() {
    const std::int64_t own_ns = CallingThreadCpuNs<Platform>();
    counters_.cpu_ns.store(earlier_cpu_ns_ + std::max<std::int64_t>(own_ns, 0),
                           std::memory_order_relaxed);
    counters_.process_cpu_ns.store(Platform::ProcessCpuTimeNs() - unsampled_process_ns_,
                                   std::memory_order_relaxed);
  }

  // Drains, then begins or ends the recordings of `due`. If memory runs out, the next drain
  // continues.
  double DrainFor(const RecordingCalls::Calls& due) {
    const std::uint64_t failures = counters_.out_of_memory.load(std::memory_order_relaxed);
    double fill = 0;
    static_cast<void>(counters_.HasMemoryFor([&] { fill = session_.Drain(); }));
    const bool is_whole = counters_.out_of_memory.load(std::memory_order_relaxed) == failures;
    recording_calls_.Serve(
        due,
        [&](RecordingCall& call) {
          callbacks_.begin_recording(call, is_whole);
          call.end_ns = clock_.MonotonicNs() + call.duration_ns;
        },
        [&](RecordingCall& call) { callbacks_.end_recording(call, is_whole); });
    return fill;
  }

  // Polls, and returns when to poll next. If memory runs out, the next poll comes a drain period
  // later.
  std::int64_t Poll(const typename Platform::Instant& since_wake, std::int64_t now_ns) {
    std::int64_t next_ns = now_ns + option_drain_ns_;
    static_cast<void>(counters_.HasMemoryFor([&] { next_ns = session_.Poll(since_wake, now_ns); }));
    return next_ns;
  }

  // Waits until `wake_ns`, or until a notification. Where the platform can wait more precisely, a
  // short wait ignores notifications.
  void WaitUntil(std::unique_lock<Monitor>& lock, std::int64_t wake_ns) {
    const std::int64_t now_ns = clock_.MonotonicNs();
    const std::int64_t time_ns = wake_ns > now_ns ? wake_ns - now_ns : 0;
    if constexpr (requires { Platform::SleepNs(time_ns); }) {
      if (time_ns <= kMaxSleepNs) {
        lock.unlock();
        Platform::SleepNs(time_ns);
        lock.lock();
        return;
      }
    }
    waits_long_ = time_ns > option_drain_ns_;
    monitor_.WaitUntil(std::chrono::steady_clock::now() + std::chrono::nanoseconds(time_ns));
    waits_long_ = false;
  }

  Session<Traits>& session_;
  CollectorCounters& counters_;
  Callbacks callbacks_;
  typename Traits::Clock clock_;
  const std::int64_t option_drain_ns_;
  const std::int64_t export_period_ns_;
  // Used by the collector's thread.
  std::int64_t earlier_cpu_ns_ = 0;        // of earlier sessions
  std::int64_t unsampled_process_ns_ = 0;  // of the process's CPU time
  // Short at first: what a program executes for the first time needs tables, and until then its
  // stacks fill the rings.
  std::int64_t drain_ns_ = std::min(kMinDrainPeriodNs, option_drain_ns_);
  std::int64_t next_drain_ns_ = 0;
  std::int64_t next_check_ns_ = 0;
  std::int64_t next_export_ns_ = 0;
  std::int64_t next_poll_ns_ = 0;  // INT64_MAX if none is planned
  bool has_left_cpu_ = false;      // so the next instant is not planned

  Monitor monitor_;
  RecordingCalls recording_calls_{monitor_};
  bool is_ending_ = false;
  bool expects_more_ = false;
  bool waits_long_ = false;  // longer than the option
  std::uint64_t periods_asked_ = 0;
  std::uint64_t periods_done_ = 0;
  bool was_period_ended_ = false;
  typename Platform::OwnThread thread_;
};

}  // namespace internal
}  // namespace strobe
