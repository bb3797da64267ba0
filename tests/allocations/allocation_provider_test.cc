#include "strobe/allocations/allocation_provider.h"

#include <string_view>

#include "gtest/gtest.h"
#include "strobe/provider/provider_list.h"
#include "strobe/provider/wall_time_provider.h"

namespace strobe {
namespace {

TEST(AllocationProvider, HasTheNamesOfPprof) {
  using List = ProviderList<WallTimeProvider, AllocationProvider>;
  const auto types = List::AllValueTypes();
  ASSERT_EQ(types.size(), 5U);
  EXPECT_EQ(std::string_view(types[1].type), "alloc_objects");
  EXPECT_EQ(std::string_view(types[1].unit), "count");
  EXPECT_EQ(std::string_view(types[2].type), "alloc_space");
  EXPECT_EQ(std::string_view(types[2].unit), "bytes");
  EXPECT_EQ(std::string_view(types[3].type), "inuse_objects");
  EXPECT_EQ(std::string_view(types[3].unit), "count");
  EXPECT_EQ(std::string_view(types[4].type), "inuse_space");
  EXPECT_EQ(std::string_view(types[4].unit), "bytes");
  EXPECT_TRUE(List::kBringsEvents);
}

}  // namespace
}  // namespace strobe
