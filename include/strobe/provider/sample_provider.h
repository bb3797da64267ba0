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

// A registered thread as a provider sees it. Control plane; the runtime serialises all calls for one thread.
class SampledThread {
 public:
  virtual ~SampledThread() = default;

  // The system's thread id.
  [[nodiscard]] virtual std::uint64_t id() const = 0;
  // CPU time that the thread has used, or -1 where the system does not say (it has ended).
  [[nodiscard]] virtual std::int64_t CpuTimeNs() = 0;
  // Asks for a stack from a timer on the thread's CPU clock: first after `first_ns` of its CPU time, then each `period_ns`. Each expiry
  // brings this provider the weight 1, and an overrun one more. False where the system refuses; a thread has at most one timer.
  virtual bool StartCpuTimer(std::int64_t first_ns, std::int64_t period_ns) = 0;
  // Ends it; expiries that have not yet been delivered are lost, and are the provider's to account for.
  virtual void StopCpuTimer() = 0;
  // Interrupts the thread soon and gives its stack then the weight `weight`. Requests not yet served add up. Where `cpu_clock_wanted`, the
  // capture also notes the thread's CPU clock, which costs it one system call.
  virtual void Request(std::int64_t weight, bool cpu_clock_wanted) = 0;
  // Adds `weight` to the stack that this provider's last served request saw, without disturbing the thread. False if there is none.
  virtual bool ExtendLast(std::int64_t weight) = 0;
  // The weight that captures have credited to this provider since it was attached, in flight or not.
  [[nodiscard]] virtual std::int64_t credited_weight() const = 0;
  // The thread's CPU clock at the last served request that wanted it; -1 before.
  [[nodiscard]] virtual std::int64_t last_capture_cpu_ns() const = 0;
  // Requests not yet served.
  [[nodiscard]] virtual bool request_pending() const = 0;
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

// A provider is constructed from the options at each Start and has, all on the control plane:
// * kValueTypes: its columns of a profile, an array of ValueType. A column that two providers name is an error of the list.
// * ThreadState: what it keeps for one thread, default-constructible.
// * enabled(): whether the options ask for it at all. Where false, nothing else is called, and its columns are not in the profile.
// * period_ns(): the sampling period in nanoseconds of whatever it measures, 0 where it has none.
// * Attach(thread, state, random, now_ns): the thread is sampled from now on. Called by the thread itself when it registers, or by Start.
// * Detach(thread, state, now_ns): no more. Returns the residual, the signed weight that is due beyond credited_weight(), in the unit of
//   the values' last column.
// * look_period_ns(state): how long after this look the next is wanted (read after Attach and after each Look); 0 for never.
// * Look(thread, state, random, now_ns): called by the collector at such an instant.
// * AddWeight(weight, state, row): adds the values of `weight` to its own columns.
// * AddResidual(residual, row): adds what Detach returned.
template <class P>
concept SampleProvider =
    std::constructible_from<P, const SamplingOptions&> && std::default_initializable<typename P::ThreadState> &&
    requires(P& provider, const P& constant, SampledThread& thread, typename P::ThreadState& state,
             const typename P::ThreadState& constant_state, RandomSource& random, std::int64_t number, std::span<std::int64_t> row) {
      { P::kValueTypes.size() } -> std::convertible_to<std::size_t>;
      { P::kValueTypes[0] } -> std::convertible_to<ValueType>;
      { constant.enabled() } -> std::same_as<bool>;
      { constant.period_ns() } -> std::same_as<std::int64_t>;
      { provider.Attach(thread, state, random, number) } -> std::same_as<void>;
      { provider.Detach(thread, state, number) } -> std::same_as<std::int64_t>;
      { constant.look_period_ns(constant_state, random) } -> std::same_as<std::int64_t>;
      { provider.Look(thread, state, random, number) } -> std::same_as<void>;
      { constant.AddWeight(number, constant_state, row) } -> std::same_as<void>;
      { constant.AddResidual(number, row) } -> std::same_as<void>;
    };

}  // namespace strobe
