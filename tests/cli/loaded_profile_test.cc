#include "../../src/cli/loaded_profile.h"

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(LoadedProfileTest, TextsLiveAsLongAsTheProfileWhereverItGoes) {
  LoadedProfile first;
  for (int i = 0; i < 100; ++i) {
    const std::string name = "t" + std::to_string(i);
    first.profile.value_types.push_back({first.Keep(name), first.Keep("a longer text " + name)});
  }
  LoadedProfile second(std::move(first));
  LoadedProfile third;
  third.Keep("another");
  third = std::move(second);
  ASSERT_EQ(third.profile.value_types.size(), 100u);
  for (int i = 0; i < 100; ++i) {
    const std::string name = "t" + std::to_string(i);
    const ValueType& type = third.profile.value_types[static_cast<std::size_t>(i)];
    EXPECT_EQ(type.type, name);
    EXPECT_EQ(type.unit, "a longer text " + name);
  }
}

TEST(LoadedProfileTest, IsNotCopied) {
  EXPECT_FALSE(std::is_copy_constructible_v<LoadedProfile>);
  EXPECT_FALSE(std::is_copy_assignable_v<LoadedProfile>);
}

}  // namespace
}  // namespace strobe::internal
