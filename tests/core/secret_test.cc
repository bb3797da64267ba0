#include "strobe/core/settings/secret.h"

#include <concepts>
#include <ostream>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace strobe {
namespace {

template <class T>
concept Printable = requires(std::ostream& out, const T& value) {
  out << value;
};

TEST(Secret, IsRevealedOnlyOnRequest) {
  const Secret secret = "key";
  EXPECT_EQ(secret.Reveal(), "key");
  EXPECT_FALSE(secret.empty());
  EXPECT_TRUE(Secret().empty());
  EXPECT_FALSE((std::convertible_to<Secret, std::string>));
  EXPECT_FALSE((std::convertible_to<Secret, std::string_view>));
  EXPECT_FALSE(Printable<Secret>);
}

}  // namespace
}  // namespace strobe
