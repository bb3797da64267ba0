#include "../../../src/symbolize/names/d_words.h"

#include <cstddef>
#include <string_view>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(DWordsTest, NoWordIsHiddenByOneBeforeIt) {
  const auto check = [](const auto& words) {
    for (std::size_t later = 0; later < words.size(); ++later) {
      for (std::size_t i = 0; i < later; ++i)
        EXPECT_FALSE(words[later].first.starts_with(words[i].first)) << words[later].first;
    }
  };
  check(kBasicDTypes);
  check(kDTypeModifiers);
  check(kDConventions);
  check(kDAttributes);
  check(kDParameterKinds);
}

}  // namespace
}  // namespace strobe::internal
