#include "strobe/core/value_type.h"

#include <gtest/gtest.h>

namespace strobe {
namespace {

// Equality is by text: two providers that name the same column in different literals are found out.
TEST(ValueType, ComparesByText) {
  const char type[] = {'c', 'p', 'u', '\0'};
  EXPECT_EQ((ValueType{"cpu", "nanoseconds"}), (ValueType{type, "nanoseconds"}));
  EXPECT_NE((ValueType{"cpu", "nanoseconds"}), (ValueType{"wall", "nanoseconds"}));
  EXPECT_NE((ValueType{"cpu", "nanoseconds"}), (ValueType{"cpu", "count"}));
  static_assert(ValueType{"a", "b"} == ValueType{"a", "b"});
}

}  // namespace
}  // namespace strobe
