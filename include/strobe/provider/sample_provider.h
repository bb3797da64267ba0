// The contract of a sample provider: what is measured, and when a thread is asked for its stack.
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

#include "strobe/core/options.h"
#include "strobe/core/value_type.h"

namespace strobe {

// A registered thread as a provider sees it. Control plane; the runtime serialises all calls for
// one thread.
class SampledThread {
 public:
  virtual ~SampledThread() = default;

  // CPU time that the thread has used, in nanoseconds, or -1 where the system does not say.
  virtual std::int64_t CpuTimeNs() = 0;
  // The same, as read when the thread was attached.
  [[nodiscard]] virtual std::int64_t attach_cpu_ns() const = 0;
  // Asks for a stack from a timer on the thread's CPU clock: first after `first_ns` of its CPU
  // time, then each `period_ns`. Each expiry brings this provider the weight 1, and each overrun
  // one more. False where the system refuses; a thread has one timer.
  virtual bool StartCpuTimer(std::int64_t first_ns, std::int64_t period_ns) = 0;
  // The weight that this provider has been credited with since the thread was attached.
  [[nodiscard]] virtual std::int64_t credited_weight() const = 0;
  // The thread's CPU clock at the last capture that was asked to note it; -1 before.
  [[nodiscard]] virtual std::int64_t last_capture_cpu_ns() const = 0;
  // Whether a request has not been served yet.
  [[nodiscard]] virtual bool request_pending() const = 0;
};

// What a provider wants of a thread that it was asked about.
struct PollVerdict {
  enum class Action : std::uint8_t {
    kNothing,
    // Interrupt the thread soon, and give its stack then the weight. Requests not yet served add
    // up.
    kRequest,
    // Add the weight to the stack that the thread's last capture saw, without disturbing the
    // thread. As kRequest where there is no such stack, or it had other labels.
    kExtendLast,
  };
  Action action = Action::kNothing;
  std::int64_t weight = 0;
  // Whether a capture that is requested also notes the thread's CPU clock, which costs it one
  // system call.
  bool wants_cpu_clock = false;
};

// A source of random numbers for first expiries, dither and instants; uniform in [0, 1).
class RandomSource {
 public:
  explicit RandomSource(std::uint64_t seed) : state_(seed) {}
  double Uniform() {
    state_ += 0x9E3779B97F4A7C15;  // splitmix64
    std::uint64_t z = state_;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return static_cast<double>((z ^ (z >> 31)) >> 11) * 0x1.0p-53;
  }

 private:
  std::uint64_t state_;
};

namespace internal {

// The groups of functions that capabilities are made of.
template <class P>
concept HasColumns = requires(const P& constant) {
  { P::kValueTypes.size() } -> std::convertible_to<std::size_t>;
  { P::kValueTypes[0] } -> std::convertible_to<ValueType>;
  { constant.enabled() } -> std::same_as<bool>;
};

template <class P>
concept HasAccount = std::default_initializable<typename P::ThreadState> &&
    requires(P& provider, const P& constant, SampledThread& thread, typename P::ThreadState& state,
             const typename P::ThreadState& constant_state, RandomSource& random,
             std::int64_t number, std::span<std::int64_t> row) {
  { constant.period_ns() } -> std::same_as<std::int64_t>;
  { provider.Attach(thread, state, random, number) } -> std::same_as<void>;
  { provider.Detach(thread, state, number) } -> std::same_as<std::int64_t>;
  { constant.AddWeight(number, constant_state, row) } -> std::same_as<void>;
  { constant.AddResidual(number, row) } -> std::same_as<void>;
};

template <class P>
concept HasPolls = std::default_initializable<typename P::ThreadState> &&
    requires(P& provider, const P& constant, SampledThread& thread, typename P::ThreadState& state,
             RandomSource& random, std::int64_t number) {
  { constant.poll_period_ns(random) } -> std::same_as<std::int64_t>;
  { provider.Poll(thread, state, number) } -> std::same_as<PollVerdict>;
};

// Whether a provider names a function of such a group, whatever its type.
template <class P>
concept NamesAccount = requires {
  &P::Attach;
}
|| requires { &P::Detach; }
|| requires { &P::AddWeight; }
|| requires { &P::AddResidual; };
template <class P>
concept NamesPolls = requires {
  &P::Poll;
}
|| requires { &P::poll_period_ns; };

// A provider that names a function of a group has all of them.
template <class P>
concept HasWholeAccountOrNone = !NamesAccount<P> || HasAccount<P>;
template <class P>
concept HasWholePollsOrNone = !NamesPolls<P> || HasPolls<P>;

}  // namespace internal

// At each Start, a provider is constructed from the options, or is a copy of one that the program
// has given (core/part.h). All its functions are called on the control plane. It has:
// * kValueTypes: its columns of a profile, an array of ValueType. A column that two providers name
//   is an error of the list.
// * enabled(): whether the options ask for it at all. Where false, nothing else is called, and its
//   columns are not in the profile.
// What else it has says what it can do: see ClockedProvider, PolledProvider and EventProvider. A
// provider without a capability pays nothing for it. A provider that has one function of a
// capability has them all.
template <class P>
concept SampleProvider = (std::constructible_from<P, const SamplingOptions&> ||
                          std::copy_constructible<P>)&&internal::HasColumns<P>&& internal::
    HasWholeAccountOrNone<P>&& internal::HasWholePollsOrNone<P>;

// A provider that may use the thread's CPU timer, and settles each thread's account by a clock:
// * ThreadState: what it keeps for one thread, default-constructible.
// * period_ns(): the sampling period in nanoseconds of whatever it measures, 0 where it has none.
// * Attach(thread, state, random, now_ns): the thread is sampled from now on. Called by the thread
//   itself when it registers, or by Start.
// * Detach(thread, state, now_ns): no more; the thread's timer has been stopped, and no capture is
//   under way. Returns the residual: the signed amount that its clock says beyond what has been
//   credited.
// * AddWeight(weight, state, row): adds the values of `weight` to its own columns; `row` is just
//   those. They are in proportion to the weight, and what a weight of 1 stands for does not change
//   between Attach and Detach.
// * AddResidual(residual, row): adds what Detach returned.
// And where the weights of a thread can stand for more than its clock has come to:
// * Residual(thread, state, weight): what Detach would return now, had `weight` been credited. At
//   the end of a period, what is less than 0 is held back for the next one, so that no profile says
//   more of a thread than its clock.
// now_ns is the clock's monotonic time.
template <class P>
concept ClockedProvider = SampleProvider<P> && internal::HasAccount<P>;

// A provider whose threads the collector polls. It never calls back:
// * ThreadState: what it keeps for one thread. Attach begins it anew; without Attach, a new one
//   replaces it at each attachment.
// * poll_period_ns(random): how long after this poll round the next is wanted; 0 for none. The
//   collector asks again at every drain.
// * Poll(thread, state, now_ns): called by the collector for every thread in such a round. Returns
//   what the provider wants of the thread: a PollVerdict. Where a ClockedProvider has a
//   kSkipsIdleThreads, a thread whose CPU clock stood still at the last polls, and that can have
//   used no more than a period since, may be skipped.
// Without an account of its own, it has one value type, and a weight is an amount of that. What is
// requested, and not served when the thread is detached, is exported as [lost].
template <class P>
concept PolledProvider = SampleProvider<P> && internal::HasPolls<P>;

// A provider whose samples the program's own threads bring, by BasicProfiler::CaptureHere:
// * kBringsEvents: true.
// Each of its value types is an amount that an event has. It has no account of its own, and is not
// polled. What an event brought, and could not be recorded when its thread was detached, is
// exported as [lost].
template <class P>
concept EventProvider =
    SampleProvider<P> && P::kBringsEvents && !internal::NamesAccount<P> && !internal::NamesPolls<P>;

namespace internal {

// What one event of an EventProvider brings.
struct EventSample {
  std::size_t provider = 0;               // its number in the list of providers
  std::span<const std::int64_t> amounts;  // one for each of its value types
  std::uint32_t skip = 0;                 // frames of the leaf that the stack is shown without
};

// The state that a provider keeps for one thread; without a ThreadState, none.
template <class P>
struct ThreadStateOf {
  struct Type {};
};
template <class P>
requires requires { typename P::ThreadState; }
struct ThreadStateOf<P> {
  using Type = typename P::ThreadState;
};
}  // namespace internal

}  // namespace strobe
