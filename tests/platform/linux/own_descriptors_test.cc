#include "strobe/platform/linux/own_descriptors.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>

#include "gtest/gtest.h"
#include "support/in_child.h"

namespace strobe::internal {
namespace {

// Whether a fork's child has the descriptor.
bool IsInChild(int descriptor) {
  return testing::HoldsInChild([&] { return fcntl(descriptor, F_GETFD) >= 0; });
}

TEST(OwnDescriptors, AForksChildClosesThemAndTheParentKeepsThem) {
  std::array<int, 2> ends{};
  ASSERT_EQ(pipe2(ends.data(), O_CLOEXEC), 0);
  CloseInChild(ends[0]);
  EXPECT_FALSE(IsInChild(ends[0]));
  EXPECT_TRUE(IsInChild(ends[1])) << "it was not named";
  EXPECT_GE(fcntl(ends[0], F_GETFD), 0);
  ForgetInChild(ends[0]);
  EXPECT_TRUE(IsInChild(ends[0]));
  close(ends[0]);
  close(ends[1]);
}

TEST(OwnDescriptors, TooManyAreNoError) {
  for (std::size_t i = 0; i < kMaxOwnDescriptors + 1; ++i)
    CloseInChild(100'000 + static_cast<int>(i));
  EXPECT_FALSE(IsInChild(100'000));
  for (std::size_t i = 0; i < kMaxOwnDescriptors + 1; ++i)
    ForgetInChild(100'000 + static_cast<int>(i));
}

}  // namespace
}  // namespace strobe::internal
