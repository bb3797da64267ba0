#include "strobe/allocations/allocation_provider.h"

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "strobe/provider/provider_list.h"
#include "strobe/provider/wall_time_provider.h"

namespace strobe {
namespace {

TEST(AllocationProvider, HasTheNamesOfPprof) {
  using List = ProviderList<WallTimeProvider, AllocationProvider>;
  const auto types = List::AllValueTypes();
  ASSERT_EQ(types.size(), 7U);
  std::size_t i = 1;
  for (const std::string_view what : {"alloc", "peak", "inuse"}) {
    EXPECT_EQ(types[i].type, absl::StrCat(std::string(what), "_objects"));
    EXPECT_EQ(std::string_view(types[i++].unit), "count");
    EXPECT_EQ(types[i].type, absl::StrCat(std::string(what), "_space"));
    EXPECT_EQ(std::string_view(types[i++].unit), "bytes");
  }
  EXPECT_TRUE(List::kBringsEvents);
}

}  // namespace
}  // namespace strobe
