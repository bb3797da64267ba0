#include "strobe/base/checked_containers.h"

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

// tests/consumer/build.py shows that a program that does not agree is refused.
TEST(CheckedContainers, AreAsInTheLibrary) { EXPECT_NE(containers_of_library, nullptr); }

}  // namespace
}  // namespace strobe::internal
