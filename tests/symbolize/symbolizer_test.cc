#include "strobe/symbolize/symbolizer.h"

#include "gtest/gtest.h"

namespace strobe {
namespace {

struct NoSymbolizer {
  absl::StatusOr<Symbols> Symbolize(const Profile& /*profile*/) { return Symbols{}; }
};
struct SymbolizerWithoutStatus {
  Symbols Symbolize(const Profile& /*profile*/) { return {}; }
};
struct SymbolizerThatChangesTheProfile {
  absl::StatusOr<Symbols> Symbolize(Profile& /*profile*/) { return Symbols{}; }
};
static_assert(Symbolizer<NoSymbolizer>);
static_assert(!Symbolizer<SymbolizerWithoutStatus>);
static_assert(!Symbolizer<SymbolizerThatChangesTheProfile>);

TEST(SymbolizerTest, SmallestModelLeavesEveryFrameWithoutAName) {
  NoSymbolizer symbolizer;
  const absl::StatusOr<Symbols> symbols = symbolizer.Symbolize(Profile{});
  ASSERT_TRUE(symbols.ok());
  EXPECT_TRUE(symbols->frames.empty());
}

}  // namespace
}  // namespace strobe
