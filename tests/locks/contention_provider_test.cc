#include "strobe/locks/contention_provider.h"

#include <string_view>

#include "gtest/gtest.h"
#include "strobe/provider/provider_list.h"
#include "strobe/provider/wall_time_provider.h"

namespace strobe {
namespace {

TEST(ContentionProvider, HasTheNamesOfGo) {
  using List = ProviderList<WallTimeProvider, ContentionProvider>;
  const auto types = List::AllValueTypes();
  ASSERT_EQ(types.size(), 3U);
  EXPECT_EQ(std::string_view(types[1].type), "contentions");
  EXPECT_EQ(std::string_view(types[1].unit), "count");
  EXPECT_EQ(std::string_view(types[2].type), "delay");
  EXPECT_EQ(std::string_view(types[2].unit), "nanoseconds");
}

}  // namespace
}  // namespace strobe
