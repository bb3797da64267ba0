#include "../../../src/platform/linux/held_by_thread.h"

#include <memory>
#include <thread>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using Counted = std::shared_ptr<int>;

TEST(HeldByThreadTest, LastsUntilTheThreadEnds) {
  static HeldByThread<Counted> held;
  ASSERT_TRUE(held.Begin());
  const Counted own = std::make_shared<int>(1);
  EXPECT_EQ(held.Get(), nullptr);
  held.Hold(own);
  std::thread([&] {
    EXPECT_EQ(held.Get(), nullptr) << "each thread has its own";
    held.Hold(own);
    EXPECT_EQ(own.use_count(), 3);
  }).join();
  EXPECT_EQ(own.use_count(), 2) << "the thread has ended";
  const Counted other = std::make_shared<int>(2);
  held.Hold(other);
  EXPECT_EQ(own.use_count(), 1);
  EXPECT_EQ(**held.Get(), 2);
  held.End();
  EXPECT_EQ(other.use_count(), 1);
  EXPECT_EQ(held.Get(), nullptr);
}

}  // namespace
}  // namespace strobe::internal
