// The contract of a SampleProvider as tests. The suite enables and disables the provider, so it
// needs a harness:
//
//   struct MyHarness {
//     using Provider = MyProvider;
//     static SamplingOptions Enabled();              // options that enable it
//     static SamplingOptions Disabled();             // options that disable it, if possible
//     static constexpr bool kHasResidual = true;     // Detach reads the residual from a clock;
//                                                     // false without Detach
//   };
//   // In namespace strobe::testing:
//   INSTANTIATE_TYPED_TEST_SUITE_P(MyProvider, ProviderConformance, MyHarness);
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "gtest/gtest.h"
#include "strobe/provider/sample_provider.h"
#include "strobe/testing/fakes/manual_thread.h"

namespace strobe::testing {

// The suite's script for a thread between its attachment and its detachment: some CPU time, some
// waiting, polls, captures.
struct ProviderHistory {
  std::uint64_t seed = 0;       // for the durations
  bool has_polls = true;        // true if the collector polls the thread
  double capture_chance = 1;    // probability that a request is served before the next step
  bool refuses_timers = false;  // true if the system refuses timers
  bool changes_rate = false;    // true if a recording asks for a higher rate in between
};

template <class H>
class ProviderConformance : public ::testing::Test {
 protected:
  using Provider = typename H::Provider;
  static_assert(SampleProvider<Provider>);
  using State = typename internal::ThreadStateOf<Provider>::Type;

  // These functions do what the runtime does, with and without each capability of the provider.
  static void Attach(Provider& provider, ManualThread& thread, std::unique_ptr<State>& state,
                     RandomSource& random, std::int64_t now_ns) {
    if constexpr (ClockedProvider<Provider>) {
      provider.Attach(thread, *state, random, now_ns);
    } else {
      state = std::make_unique<State>();
    }
  }
  static void Poll(Provider& provider, ManualThread& thread, State& state, std::int64_t now_ns) {
    if constexpr (PolledProvider<Provider>) thread.Request(provider.Poll(thread, state, now_ns));
  }

  static void ChangeRate(Provider& provider, ManualThread& thread, State& state,
                         RandomSource& random, int step) {
    if constexpr (RatedProvider<Provider>) {
      if (step % 100 != 50) return;
      provider.SetPeriod(step == 150 ? provider.period_ns() / 7 : provider.period_ns());
      provider.Retime(thread, state, random);
    }
  }

  // Plays the history and returns all that it adds to the profile's last column. `state` may come
  // from an earlier attachment.
  std::int64_t Play(const ProviderHistory& history, std::unique_ptr<State>& state) {
    Provider provider(H::Enabled());
    ManualThread thread;
    thread.refuses_timers = history.refuses_timers;
    RandomSource durations(history.seed);
    RandomSource captures(history.seed + 1);
    RandomSource random(7);
    // Time before the attachment must not count.
    thread.RunFor(static_cast<std::int64_t>(durations.Uniform() * 1e9));
    thread.Begin();
    std::int64_t now_ns = 1'000'000'000;
    Attach(provider, thread, state, random, now_ns);
    for (int step = 0; step < 300; ++step) {
      const auto cpu_ns =
          static_cast<std::int64_t>(durations.Uniform() < 0.5 ? 0 : durations.Uniform() * 30e6);
      if (history.changes_rate) ChangeRate(provider, thread, *state, random, step);
      now_ns += cpu_ns + static_cast<std::int64_t>(durations.Uniform() * 50e6);
      thread.RunFor(cpu_ns);
      const int requests_before = thread.requests();
      if (history.has_polls) Poll(provider, thread, *state, now_ns);
      if (thread.requests() != requests_before) {
        EXPECT_GT(thread.last_request(), 0) << "a weight that is asked for is positive";
      }
      if (captures.Uniform() < history.capture_chance) thread.Capture();
    }
    thread.End();
    std::int64_t residual = 0;
    if constexpr (ClockedProvider<Provider>)
      residual = std::optional<std::int64_t>(provider.Detach(thread, *state, now_ns)).value_or(0);
    return residual + thread.credited_weight();
  }
  std::int64_t Play(const ProviderHistory& history) {
    auto state = std::make_unique<State>();
    return Play(history, state);
  }
};
TYPED_TEST_SUITE_P(ProviderConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(ProviderConformance);

// kValueTypes: at least one, each with a type and a unit, all distinct.
TYPED_TEST_P(ProviderConformance, ValueTypesAreNamedAndDistinct) {
  const auto& types = TypeParam::Provider::kValueTypes;
  ASSERT_GE(types.size(), 1u);
  for (std::size_t i = 0; i < types.size(); ++i) {
    EXPECT_FALSE(types[i].type.empty());
    EXPECT_FALSE(types[i].unit.empty());
    for (std::size_t j = i + 1; j < types.size(); ++j) EXPECT_FALSE(types[i] == types[j]);
  }
}

// enabled(): true if the options enable the provider.
TYPED_TEST_P(ProviderConformance, OptionsEnableAndDisableIt) {
  EXPECT_TRUE(typename TypeParam::Provider(TypeParam::Enabled()).enabled());
  if constexpr (requires { TypeParam::Disabled(); }) {
    EXPECT_FALSE(typename TypeParam::Provider(TypeParam::Disabled()).enabled());
  }
}

// period_ns() and poll_period_ns(): 0 or a duration.
TYPED_TEST_P(ProviderConformance, PeriodsAreNotNegative) {
  [[maybe_unused]] const typename TypeParam::Provider provider(TypeParam::Enabled());
  if constexpr (ClockedProvider<typename TypeParam::Provider>) {
    EXPECT_GE(provider.period_ns(), 0);
  }
  if constexpr (PolledProvider<typename TypeParam::Provider>) {
    EXPECT_GE(provider.poll_period_ns(), 0);
  }
}

// Attach: resets the state, whatever an earlier attachment left in it.
TYPED_TEST_P(ProviderConformance, AttachBeginsAnew) {
  auto used = std::make_unique<typename TestFixture::State>();
  this->Play({.seed = 3}, used);
  EXPECT_EQ(this->Play({.seed = 4}, used), this->Play({.seed = 4}));
}

// Detach: the residual has what was not sampled. So the sum does not depend on how the thread was
// sampled, how often, or whether at all.
TYPED_TEST_P(ProviderConformance, TheResidualCompletesTheAccount) {
  if (!TypeParam::kHasResidual) return;
  for (std::uint64_t seed = 1; seed <= 50; ++seed) {
    const std::int64_t whole = this->Play({.seed = seed});
    EXPECT_EQ(this->Play({.seed = seed, .capture_chance = 0.3}), whole);
    EXPECT_EQ(this->Play({.seed = seed, .capture_chance = 0}), whole);
    EXPECT_EQ(this->Play({.seed = seed, .has_polls = false}), whole);
    EXPECT_EQ(this->Play({.seed = seed, .refuses_timers = true}), whole);
    EXPECT_EQ(this->Play({.seed = seed, .changes_rate = true}), whole);
    EXPECT_EQ(this->Play({.seed = seed, .capture_chance = 0.3, .refuses_timers = true}), whole);
  }
}

REGISTER_TYPED_TEST_SUITE_P(ProviderConformance, ValueTypesAreNamedAndDistinct,
                            OptionsEnableAndDisableIt, PeriodsAreNotNegative, AttachBeginsAnew,
                            TheResidualCompletesTheAccount);

}  // namespace strobe::testing
