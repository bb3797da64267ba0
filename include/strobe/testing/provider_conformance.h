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
#include "strobe/testing/manual_thread.h"

namespace strobe::testing {

// The suite's script for a thread between its attachment and its detachment: some CPU time, some
// waiting, polls, captures.
struct ProviderHistory {
  std::uint64_t seed = 0;       // for the durations
  bool has_polls = true;        // true if the collector polls the thread
  double capture_chance = 1;    // probability that a request is served before the next step
  bool refuses_timers = false;  // true if the system refuses timers
};

template <class H>
class ProviderConformance : public ::testing::Test {
 protected:
  using Provider = typename H::Provider;
  static_assert(SampleProvider<Provider>);
  static constexpr std::size_t kColumns = Provider::kValueTypes.size();
  using Row = std::array<std::int64_t, kColumns>;
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
    if constexpr (PolledProvider<Provider>) thread.Apply(provider.Poll(thread, state, now_ns));
  }
  static void AddWeight(const Provider& provider, std::int64_t weight, const State& state,
                        Row& row) {
    if constexpr (ClockedProvider<Provider>) {
      provider.AddWeight(weight, state, row);
    } else {
      row[0] += weight;
    }
  }
  static void AddResidual(const Provider& provider, std::int64_t residual, Row& row) {
    if constexpr (ClockedProvider<Provider>) provider.AddResidual(residual, row);
  }

  // Plays the history and returns all that it adds to the profile. `state` may come from an earlier
  // attachment.
  Row Play(const ProviderHistory& history, std::unique_ptr<State>& state) {
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
    Row row{};
    if constexpr (ClockedProvider<Provider>)
      provider.AddResidual(provider.Detach(thread, *state, now_ns), row);
    AddWeight(provider, thread.credited_weight(), *state, row);
    return row;
  }
  Row Play(const ProviderHistory& history) {
    auto state = std::make_unique<State>();
    return Play(history, state);
  }

  // The columns of `row` that residuals go to, in which nothing may be lost.
  static Row Conserved(Row row) {
    Row residual{};
    const Provider provider(H::Enabled());
    AddResidual(provider, 1, residual);
    for (std::size_t i = 0; i < kColumns; ++i) row[i] = residual[i] == 0 ? 0 : row[i];
    return row;
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
    RandomSource random(1);
    for (int i = 0; i < 1000; ++i) EXPECT_GE(provider.poll_period_ns(random), 0);
  }
}

// AddWeight and AddResidual: add to the values in the row, in proportion. 0 adds nothing.
TYPED_TEST_P(ProviderConformance, ValuesAddUp) {
  typename TypeParam::Provider provider(TypeParam::Enabled());
  ManualThread thread;
  auto state = std::make_unique<typename TestFixture::State>();
  RandomSource random(1);
  thread.Begin();
  TestFixture::Attach(provider, thread, state, random, 0);
  typename TestFixture::Row none{};
  TestFixture::AddWeight(provider, 0, *state, none);
  TestFixture::AddResidual(provider, 0, none);
  EXPECT_EQ(none, typename TestFixture::Row{});
  typename TestFixture::Row once{};
  TestFixture::AddWeight(provider, 12, *state, once);
  TestFixture::AddResidual(provider, -5, once);
  typename TestFixture::Row in_parts{};
  for (const int part : {1, 4, 7}) TestFixture::AddWeight(provider, part, *state, in_parts);
  for (const int part : {-9, 4}) TestFixture::AddResidual(provider, part, in_parts);
  EXPECT_EQ(once, in_parts);
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
    const auto whole = TestFixture::Conserved(this->Play({.seed = seed}));
    EXPECT_EQ(TestFixture::Conserved(this->Play({.seed = seed, .capture_chance = 0.3})), whole);
    EXPECT_EQ(TestFixture::Conserved(this->Play({.seed = seed, .capture_chance = 0})), whole);
    EXPECT_EQ(TestFixture::Conserved(this->Play({.seed = seed, .has_polls = false})), whole);
    EXPECT_EQ(TestFixture::Conserved(this->Play({.seed = seed, .refuses_timers = true})), whole);
    EXPECT_EQ(TestFixture::Conserved(
                  this->Play({.seed = seed, .capture_chance = 0.3, .refuses_timers = true})),
              whole);
  }
}

REGISTER_TYPED_TEST_SUITE_P(ProviderConformance, ValueTypesAreNamedAndDistinct,
                            OptionsEnableAndDisableIt, PeriodsAreNotNegative, ValuesAddUp,
                            AttachBeginsAnew, TheResidualCompletesTheAccount);

}  // namespace strobe::testing
