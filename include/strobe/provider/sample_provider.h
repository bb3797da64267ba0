// The contract of a sample provider: what it measures, and when it requests a thread's stack.
#pragma once

#include <array>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>

#include "strobe/base/split_mix.h"
#include "strobe/base/visibility.h"
#include "strobe/core/options.h"
#include "strobe/core/stack_table.h"
#include "strobe/core/value_type.h"

namespace strobe {

// A thread's timer on its CPU clock.
enum class TimerKind : std::uint8_t { kNone, kPeriodic, kRandom };

// A registered thread as a provider sees it. Control plane; the runtime serialises all calls for
// one thread.
class SampleTarget {
 public:
  virtual ~SampleTarget() = default;

  // CPU time that the thread has used, in nanoseconds; -1 if the system does not tell.
  virtual std::int64_t CpuTimeNs() = 0;
  // CpuTimeNs() at the time when the thread was attached.
  [[nodiscard]] virtual std::int64_t attach_cpu_ns() const = 0;
  // Starts a timer on the thread's CPU clock, which requests a stack after `first_ns` of CPU time,
  // then every `period_ns`. Each expiry and each overrun adds the weight `period_ns` to this
  // provider. False if the system refuses. A thread has one timer, of either kind.
  virtual bool StartCpuTimer(std::int64_t first_ns, std::int64_t period_ns) = 0;
  // Starts a timer on the thread's CPU clock that requests a stack after times that are random,
  // with an exponential distribution of that mean, and expires between two ticks of the kernel,
  // too. Each expiry adds the weight `mean_ns`. False if the system has none, or refuses it. `seed`
  // is random. If the signal of an expiry is lost, the timer stands still from then on.
  virtual bool StartRandomTimer(std::int64_t mean_ns, std::uint64_t seed) = 0;
  // Stops the thread's timer, if there is one. A request that is under way is still served.
  virtual void StopCpuTimer() = 0;
  // How often the thread has given up its CPU to wait for something; -1 if the system does not
  // tell.
  virtual std::int64_t WaitCount() = 0;
  // Whether the thread has begun to block the signal that interrupts it, since it was attached.
  // Then no timer can be started, and one that runs has to be stopped: the thread would find a
  // signal pending, and a sigwait would return it. False if the system does not tell.
  virtual bool BlocksSignal() { return false; }
  // The weight that this provider has been credited with since the thread was attached.
  [[nodiscard]] virtual std::int64_t credited_weight() const = 0;
};

// What a provider can consider when it reviews how a thread is sampled.
struct ThreadReview {
  std::int64_t now_ns = 0;  // the clock's monotonic time
  // Instants per second that the budget could pay for.
  double affordable_rate_hz = 0;
};

// A source of random numbers for first expiries, dither and instants; uniform in [0, 1).
class RandomSource {
 public:
  constexpr explicit RandomSource(std::uint64_t seed) : state_(seed) {}
  double Uniform() { return internal::UniformSplitMix64(state_); }
  // Exponentially distributed. Without memory: how long it is to the next of such events does not
  // depend on how long ago the last one was.
  double Exponential(double mean) { return -std::log(1 - Uniform()) * mean; }
  std::uint64_t Bits() { return internal::SplitMix64(state_); }

 private:
  std::uint64_t state_;
};

namespace internal {

// The groups of functions that a capability consists of.
template <class P>
concept HasColumns = requires(const P& constant) {
  { P::kValueTypes.size() } -> std::convertible_to<std::size_t>;
  { P::kValueTypes[0] } -> std::convertible_to<ValueType>;
  { constant.enabled() } -> std::same_as<bool>;
};

template <class P>
concept HasAccount = std::default_initializable<typename P::ThreadState> &&
    requires(P& provider, const P& constant, SampleTarget& thread, typename P::ThreadState& state,
             RandomSource& random, std::int64_t number) {
  { constant.period_ns() } -> std::same_as<std::int64_t>;
  { provider.Attach(thread, state, random, number) } -> std::same_as<void>;
  { provider.Detach(thread, state, number) } -> std::convertible_to<std::optional<std::int64_t>>;
};

template <class P>
concept HasPolls = std::default_initializable<typename P::ThreadState> &&
    requires(P& provider, const P& constant, SampleTarget& thread, typename P::ThreadState& state,
             std::int64_t number) {
  { constant.poll_period_ns() } -> std::same_as<std::int64_t>;
  { provider.Poll(thread, state, number) } -> std::same_as<std::int64_t>;
};

template <class P>
concept HasInstants = HasAccount<P> &&
    requires(P& provider, const P& constant, SampleTarget& thread, typename P::ThreadState& state,
             const typename P::ThreadState& constant_state, RandomSource& random,
             const ThreadReview& review) {
  { constant.IsAtInstants(constant_state) } -> std::same_as<bool>;
  { provider.Review(thread, state, random, review) } -> std::same_as<void>;
};

template <class P>
concept HasRate = std::default_initializable<typename P::ThreadState> &&
    requires(P& provider, SampleTarget& thread, typename P::ThreadState& state,
             RandomSource& random, std::int64_t number) {
  { provider.SetPeriod(number) } -> std::same_as<void>;
  { provider.Retime(thread, state, random) } -> std::same_as<void>;
};

// Holds for a provider that names a function of the group, whatever the function's type.
template <class P>
concept NamesAccount = requires {
  &P::Attach;
}
|| requires { &P::Detach; };
template <class P>
concept NamesPolls = requires {
  &P::Poll;
}
|| requires { &P::poll_period_ns; };
template <class P>
concept NamesInstants = requires {
  &P::IsAtInstants;
}
|| requires { &P::Review; };
template <class P>
concept NamesRate = requires {
  &P::SetPeriod;
}
|| requires { &P::Retime; };

// A provider that names a function of a group has all of them.
template <class P>
concept HasWholeAccountOrNone = !NamesAccount<P> || HasAccount<P>;
template <class P>
concept HasWholePollsOrNone = !NamesPolls<P> || HasPolls<P>;
template <class P>
concept HasWholeInstantsOrNone = !NamesInstants<P> || HasInstants<P>;
template <class P>
concept HasWholeRateOrNone = !NamesRate<P> || HasRate<P>;

}  // namespace internal

// At each Start, a provider is constructed from the options, or copied from one that the program
// has given (core/part.h). All its functions are called on the control plane. It has:
// * kValueTypes: its columns of a profile, an array of ValueType. A column that two providers name
//   is an error of the list.
// * enabled(): true if the options enable the provider. If false, nothing else is called, and its
//   columns are not in the profile.
// * kCountsSamples, optional: true if the first of two value types counts the samples. A weight is
//   an amount of the last value type; each sample with such an amount adds 1 to the count.
// Its other members are its capabilities: see ClockedProvider, InstantProvider, PolledProvider,
// RatedProvider, WaitProvider and EventProvider. A provider without a capability pays nothing for
// it. A provider that has one function of a capability must have them all.
template <class P>
concept SampleProvider = (std::constructible_from<P, const SamplingOptions&> ||
                          std::copy_constructible<P>)&&internal::HasColumns<P>&& internal::
    HasWholeAccountOrNone<P>&& internal::HasWholePollsOrNone<P>&& internal::HasWholeInstantsOrNone<
        P>&& internal::HasWholeRateOrNone<P>;

// A provider that may use the thread's CPU timer, and settles each thread's account by a clock:
// * ThreadState: its data for one thread, default-constructible.
// * period_ns(): the sampling period in nanoseconds of what it measures; 0 if it has none.
// * Attach(thread, state, random, now_ns): begins to sample the thread. Called by the thread itself
//   when it registers, or by Start.
// * Detach(thread, state, now_ns): ends it. The thread's timer has been stopped, and no capture is
//   running. Returns the residual: the signed difference between its clock and the credited weight;
//   or nothing if the clock cannot be read, and only the credited weight is known.
// If the provider can read its clock at any time, it also has:
// * Residual(thread, state, weight, now_ns): what Detach would return now if `weight` had been
//   credited. The end of each period then settles the account, and not only Detach.
// A profile divides a residual among the thread's samples of the period, in proportion to their
// values: the clock says how much there is, and the samples say only what has which share of it. A
// residual of a thread without samples is shown as [residual].
// now_ns is the clock's monotonic time.
template <class P>
concept ClockedProvider = SampleProvider<P> && internal::HasAccount<P>;

// A clocked provider, some of whose threads the collector samples at random instants of wall time.
// At such an instant it requests a stack of each of these threads that is on a CPU, or on the one
// CPU that was drawn for the instant. The times between instants have an exponential distribution,
// so the instants are random for every program, also on the axis of a thread's CPU time. The weight
// of a sample is the mean time between two instants, divided by the probability of its CPU, so each
// thread's weights add up to its CPU time in the mean.
// * period_ns() is the least mean time between two instants. It is longer where the budget of
//   sampling.max_overhead asks for it.
// * IsAtInstants(state): true if the thread is sampled at instants. Attach and Review decide.
// * Review(thread, state, random, review): called by the collector about once a second for each
//   thread that may have run since, and at times for others. May start and stop the timer.
template <class P>
concept InstantProvider = ClockedProvider<P> && internal::HasInstants<P>;

// A provider whose threads the collector polls. It never calls back:
// * ThreadState: its data for one thread. Attach resets it; without Attach, a new one replaces it
//   at each attachment.
// * poll_period_ns(): the mean time between two poll rounds; 0 for none. The times have an
//   exponential distribution, so no program is in step with the rounds.
// * Poll(thread, state, now_ns): called by the collector for every thread in such a round. Returns
//   the weight of the stack that the thread is at now; 0 for none.
// The runtime finds that stack. It interrupts the thread only if the thread runs, or if the system
// does not say where the thread waits. A weight whose stack cannot be had now is added to the next
// one. Weights that are left when the thread is detached are exported as [lost].
template <class P>
concept PolledProvider = SampleProvider<P> && internal::HasPolls<P>;

// A clocked provider whose rate of samples can be higher for a time, because a recording asks for
// it. Its weights are times of its clock, so they divide each account rightly at any rate.
// * SetPeriod(period_ns): samples at that period from now on; poll_period_ns() returns it,
//   period_ns() stays. Called by the collector, while other threads may be in Attach or Detach.
// * Retime(thread, state, random): gives the thread's timer, if it has one, the new period. Called
//   by the collector after SetPeriod for each attached thread.
template <class P>
concept RatedProvider = ClockedProvider<P> && internal::HasRate<P>;

// A clocked provider of what threads do while they wait. It takes no samples:
// * WaitsOf: a PolledProvider of the list. Where one of its polls finds the thread waiting, the
//   stack has the poll's weight for this provider, too. Where it finds the thread running, the
//   stack has none.
// The weights say only which stack has which share; Residual says how much there is. A thread that
// was never found waiting has all of it as [residual]. Captures carry no weight of this provider.
template <class P>
concept WaitProvider =
    ClockedProvider<P> && PolledProvider<typename P::WaitsOf> && !internal::HasPolls<P> &&
    !internal::HasInstants<P>;

// A provider whose samples the program's own threads bring, by BasicProfiler::CaptureHere:
// * kBringsEvents: true.
// An event has an amount for each of the value types. The provider has no account of its own, and
// is not polled. Amounts of events that have not been recorded when the thread is detached are
// exported as [lost].
template <class P>
concept EventProvider =
    SampleProvider<P> && P::kBringsEvents && !internal::NamesAccount<P> && !internal::NamesPolls<P>;

// An EventProvider that also knows levels: how much there is of something at the end of a profile's
// time, in contrast to what has happened in that time. Its events have 0 for these value types.
// * kHasLevels: true.
// * VisitLevels(visit): calls visit(leaf_first, end, amounts, labels) for each stack that has a
//   level; more than one call for a stack add up. Without frames, the stack is not known. `amounts`
//   has one for each value type. `labels` is the number of a set in the program's LabelTable, and
//   may be left out. Called by the collector at the end of each period, and of each recording.
template <class P>
concept LevelProvider = EventProvider<P> && P::kHasLevels;

namespace internal {

// True if the first value type of the provider counts its samples.
template <class P>
inline constexpr bool kCountsSamples = false;
template <class P>
requires requires { P::kCountsSamples; }
inline constexpr bool kCountsSamples<P> = P::kCountsSamples;

// Keeps the stack of an event, without the frames that the event skips. It may lack frames that the
// collector finds later.
struct STROBE_HIDDEN StackKeeper {
  StackTable<>& table;
  // The stack's number in the table. kNone if the table has no room, if there is no record, or if
  // another capture has recorded the event.
  std::uint32_t number = StackTable<>::kNone;
};

// What one event of an EventProvider brings.
struct STROBE_HIDDEN EventSample {
  std::size_t provider = 0;               // its number in the list of providers
  std::span<const std::int64_t> amounts;  // one for each of its value types
  std::uint32_t skip = 0;                 // how many leaf frames are left out of the stack
  StackKeeper* keeper = nullptr;          // nullptr for none
};

// The ThreadState of a provider; an empty type if it has none.
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
