#include "strobe/base/shared_flag.h"

#include <cstring>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(SharedFlag, LoadsWhatWasStored) {
  SharedFlag flag{false};
  EXPECT_FALSE(flag);
  flag.store(true, std::memory_order_release);
  EXPECT_TRUE(flag.load(std::memory_order_acquire));
  EXPECT_TRUE(flag.exchange(false, std::memory_order_seq_cst));
  EXPECT_FALSE(flag.exchange(true, std::memory_order_seq_cst));
  flag = false;
  EXPECT_FALSE(flag);
}

// UndefinedBehaviorSanitizer would report a bool with such a value.
TEST(SharedFlag, AnyByteThatAnotherProcessWritesIsAValue) {
  SharedFlag flag{false};
  for (const unsigned char byte : {1, 2, 9, 255}) {
    std::memcpy(static_cast<void*>(&flag), &byte, 1);
    EXPECT_EQ(static_cast<bool>(flag), true) << int{byte};
    EXPECT_EQ(flag.exchange(false, std::memory_order_relaxed), true);
    EXPECT_FALSE(flag);
  }
}

}  // namespace
}  // namespace strobe::internal
