#include "strobe/platform/platform_symbolizer.h"

#include "gtest/gtest.h"
#include "strobe/platform/native.h"
#include "strobe/platform/unsupported_platform.h"
#include "strobe/testing/fakes/archetypes.h"

namespace strobe {
namespace {

static_assert(Symbolizer<PlatformSymbolizer<NativePlatform>>);
static_assert(Symbolizer<PlatformSymbolizer<UnsupportedPlatform>>);

TEST(PlatformSymbolizer, WithoutFilesThereAreNoNames) {
  PlatformSymbolizer<testing::ArchetypePlatform> symbolizer;
  Profile profile;
  profile.modules = {{.start = 0x1000, .limit = 0x2000, .path = "/lib/a.so", .build_id = ""}};
  profile.frames = {{0x1234, 0}};
  const Symbols symbols = *symbolizer.Symbolize(profile);
  ASSERT_EQ(symbols.functions.size(), 1u);
  EXPECT_EQ(symbols.functions[0].name, "a.so+0x1234");
  EXPECT_FALSE(symbols.functions[0].resolved);
}

}  // namespace
}  // namespace strobe
