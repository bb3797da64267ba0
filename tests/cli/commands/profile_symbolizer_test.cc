#include "../../../src/cli/commands/profile_symbolizer.h"

#include <string>

#include "../made_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;

TEST(ProfileSymbolizerTest, KeepsTheNamesThatAreThere) {
  ProfileSymbolizer symbolizer({.mode = SymbolMode::kFull});
  for (const char* const name : {"Parse", "Write"}) {
    MadeProfile made;
    made.Add({"main", name}, {1});
    LoadedProfile loaded = made.Finish();
    EXPECT_TRUE(symbolizer.Symbolize(loaded).ok());
    EXPECT_TRUE(symbolizer.AddLines(loaded).ok());
    EXPECT_THAT(RowsOf(loaded), ElementsAre("main;" + std::string(name) + " 1"));
  }
}

}  // namespace
}  // namespace strobe::internal
