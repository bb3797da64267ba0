#include "strobe/testing/fakes/manual_provider.h"

#include <memory>

#include "gtest/gtest.h"
#include "strobe/testing/fakes/manual_thread.h"
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
  EXPECT_EQ(provider.Poll(thread, state, 0), 0);
  script.weight = 3;
  EXPECT_EQ(provider.Poll(thread, state, 0), 3);
  EXPECT_EQ(script.polls, 2);
  script.residual = -9;
  EXPECT_EQ(provider.Detach(thread, state, 0), -9);
  script.is_enabled = false;
  EXPECT_FALSE(provider.enabled());
}

}  // namespace

struct ManualProviderHarness {
  using Provider = ManualProvider;
  static SamplingOptions Enabled() { return {}; }
  static constexpr bool kHasResidual = false;
};
INSTANTIATE_TYPED_TEST_SUITE_P(Manual, ProviderConformance, ManualProviderHarness);

}  // namespace strobe::testing
