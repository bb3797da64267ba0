#include "strobe/testing/fakes/archetypes.h"

#include <atomic>

#include "gtest/gtest.h"
#include "strobe/own_parts.h"
#include "strobe/runtime/control/profiler_core.h"
#include "strobe/scoped_profiler.h"
#include "strobe/testing/provider_conformance.h"
#include "strobe/testing/ring_conformance.h"
#include "strobe/testing/unwinder_conformance.h"

namespace strobe {

// Every member of a Profiler compiles with what the concepts promise and no more.
template class BasicProfiler<testing::ArchetypeTraits>;
template class BasicScopedProfiler<testing::ArchetypeTraits>;

namespace testing {
namespace {

struct CountingExporter {
  absl::StatusOr<std::string> Export(const ExportRequest& request) {
    ++*exports;
    EXPECT_EQ(request.profile.value_types.size(), 3u);
    return std::string("nowhere");
  }
  std::atomic<int>* exports;
};
struct CountingTraits : ArchetypeTraits {
  using Outputs = OutputList<Output<ArchetypeEncoder, CountingExporter>>;
};

TEST(Archetypes, AProfilerOfThemRunsAndExports) {
  std::atomic<int> exports{0};
  BasicProfiler<CountingTraits> profiler({}, {.exporter = CountingExporter{&exports}});
  const auto registration = profiler.RegisterThread("main");
  EXPECT_TRUE(registration.status().ok()) << registration.status();
  {
    const BasicScopedProfiler session(profiler);
    ASSERT_TRUE(session.status().ok()) << session.status();
    EXPECT_TRUE(profiler.Flush().ok());
  }
  EXPECT_EQ(exports, 2);
  EXPECT_EQ(profiler.stats().last_export_path, "nowhere");
}

}  // namespace

template <class P>
struct ArchetypeHarness {
  using Provider = P;
  static SamplingOptions Enabled() { return {}; }
  static constexpr bool kHasResidual = false;
};
using ArchetypeHarnesses = ::testing::Types<ArchetypeHarness<ArchetypeProvider>,
                                            ArchetypeHarness<ArchetypeClockedProvider>,
                                            ArchetypeHarness<ArchetypePolledProvider>>;
INSTANTIATE_TYPED_TEST_SUITE_P(Archetype, ProviderConformance, ArchetypeHarnesses);
INSTANTIATE_TYPED_TEST_SUITE_P(Archetype, UnwinderConformance, ArchetypeUnwinder);
INSTANTIATE_TYPED_TEST_SUITE_P(Archetype, RingConformance, ArchetypeRing);

}  // namespace testing
}  // namespace strobe
