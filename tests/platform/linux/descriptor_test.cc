#include "../../../src/platform/linux/descriptor.h"

#include <fcntl.h>

#include <utility>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

int OpenFile() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool IsOpen(int number) { return fcntl(number, F_GETFD) >= 0; }

TEST(DescriptorTest, ClosesWithItsOwner) {
  const int number = OpenFile();
  {
    const Descriptor descriptor(number);
    EXPECT_TRUE(descriptor.is_open());
    EXPECT_EQ(descriptor.get(), number);
  }
  EXPECT_FALSE(IsOpen(number));
}

TEST(DescriptorTest, MayBeNone) {
  const Descriptor none;
  EXPECT_FALSE(none.is_open());
  EXPECT_FALSE(Descriptor(-1).is_open()) << "as open() says that it failed";
}

TEST(DescriptorTest, ClosesOnce) {
  Descriptor descriptor(OpenFile());
  const int number = descriptor.get();
  descriptor.Close();
  EXPECT_FALSE(descriptor.is_open());
  const int other = OpenFile();
  EXPECT_EQ(other, number) << "the system gives the number again";
  descriptor.Close();
  EXPECT_TRUE(IsOpen(other)) << "it is not the descriptor's any more";
  close(other);
}

TEST(DescriptorTest, HasOneOwner) {
  Descriptor first(OpenFile());
  const int number = first.get();
  Descriptor second(std::move(first));
  EXPECT_FALSE(first.is_open());  // NOLINT(bugprone-use-after-move)
  first.Close();
  EXPECT_TRUE(IsOpen(number));
  Descriptor third(OpenFile());
  third = std::move(second);
  EXPECT_EQ(third.get(), number);
  EXPECT_TRUE(IsOpen(number));
}

}  // namespace
}  // namespace strobe::internal
