#include "strobe/default_traits.h"

#include <type_traits>

#include "gtest/gtest.h"
#include "strobe/own_parts.h"
#include "strobe/testing/fakes/archetypes.h"

namespace strobe {

// Every member of the default profiler compiles.
template class BasicProfiler<DefaultTraits>;

namespace {

struct OwnExporterTraits : DefaultTraits {
  using Outputs = OutputList<Output<PprofEncoder, testing::ArchetypeExporter>>;
};

TEST(DefaultTraits, ADerivedListChangesOnePartAndInheritsTheRest) {
  static_assert(std::is_same_v<OwnExporterTraits::Symbolizer, DefaultTraits::Symbolizer>);
  BasicProfiler<OwnExporterTraits> profiler;
  if (NativePlatform::Available().ok()) {
    ASSERT_TRUE(profiler.Start().ok());
    ASSERT_TRUE(profiler.Stop().ok());
    EXPECT_EQ(profiler.stats().last_export_path, "nowhere")
        << "or profiles would now lie in a directory";
  } else {
    EXPECT_FALSE(profiler.Start().ok());
  }
}

}  // namespace
}  // namespace strobe
