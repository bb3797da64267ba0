#include "strobe/base/sanitizers.h"

#include "gtest/gtest.h"

// What a build with the sanitizer has, and no other.
extern "C" {
__attribute__((weak)) void __asan_init();  // NOLINT(bugprone-reserved-identifier)
__attribute__((weak)) void __tsan_init();  // NOLINT(bugprone-reserved-identifier)
}

namespace strobe::internal {
namespace {

TEST(SanitizersTest, AreThoseOfTheBuild) {
  EXPECT_EQ(kHasAddressSanitizer, &__asan_init != nullptr);
  EXPECT_EQ(kHasThreadSanitizer, &__tsan_init != nullptr);
}

}  // namespace
}  // namespace strobe::internal
