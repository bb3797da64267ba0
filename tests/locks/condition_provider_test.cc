#include "strobe/locks/condition_provider.h"

#include <string_view>

#include "gtest/gtest.h"
#include "strobe/locks/contention_provider.h"
#include "strobe/provider/provider_list.h"

namespace strobe {
namespace {

TEST(ConditionProvider, HasColumnsBesideThoseOfContentions) {
  using List = ProviderList<ContentionProvider, ConditionProvider>;
  const auto types = List::AllValueTypes();
  ASSERT_EQ(types.size(), 4U);
  EXPECT_EQ(std::string_view(types[2].type), "condition_waits");
  EXPECT_EQ(std::string_view(types[2].unit), "count");
  EXPECT_EQ(std::string_view(types[3].type), "condition_delay");
  EXPECT_EQ(std::string_view(types[3].unit), "nanoseconds");
}

}  // namespace
}  // namespace strobe
