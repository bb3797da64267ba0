#include "strobe/testing/manual_provider.h"

#include <memory>

#include "gtest/gtest.h"
#include "strobe/testing/manual_thread.h"
#include "strobe/testing/provider_conformance.h"

namespace strobe::testing {
namespace {

TEST(ManualProvider, DoesWhatItsScriptSaysAndNotesIt) {
  const auto shared = std::make_shared<ManualProviderScript>();
  ManualProviderScript& script = *shared;
  ManualProvider provider(shared);
  ManualProvider::ThreadState state;
  ManualThread thread;
  thread.Begin();
  thread.Apply(provider.Poll(thread, state, 0));
  EXPECT_EQ(thread.requests(), 0);
  script.request = 3;
  thread.Apply(provider.Poll(thread, state, 0));
  EXPECT_EQ(thread.pending(), 3);
  script.request = 0;
  script.extend = 2;
  thread.Apply(provider.Poll(thread, state, 0));
  EXPECT_EQ(thread.pending(), 5) << "without a stack there is nothing to extend";
  thread.Capture();
  thread.Apply(provider.Poll(thread, state, 0));
  EXPECT_EQ(thread.extended(), 2);
  EXPECT_EQ(script.polls, 4);
  script.residual = -9;
  EXPECT_EQ(provider.Detach(thread, state, 0), -9);
  script.is_enabled = false;
  EXPECT_FALSE(provider.enabled());
}

}  // namespace

struct ManualHarness {
  using Provider = ManualProvider;
  static SamplingOptions Enabled() { return {}; }
  static constexpr bool kHasResidual = false;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Manual, ProviderConformance, ManualHarness);

}  // namespace strobe::testing
