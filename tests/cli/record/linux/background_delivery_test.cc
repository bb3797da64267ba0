#include "../../../../src/cli/record/linux/background_delivery.h"

#include <latch>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(BackgroundDeliveryTest, GoesOnUntilItIsAwaited) {
  BackgroundDelivery delivery;
  EXPECT_FALSE(delivery.IsBusy());
  EXPECT_FALSE(delivery.has_begun());
  EXPECT_TRUE(delivery.Await()) << "there is none";
  std::latch go_on(1);
  delivery.Begin([&] {
    go_on.wait();
    return true;
  });
  EXPECT_TRUE(delivery.IsBusy());
  EXPECT_TRUE(delivery.has_begun());
  int calls = 0;
  EXPECT_TRUE(delivery.Await([&] {
    if (++calls == 2) go_on.count_down();
  }));
  EXPECT_GE(calls, 2);
  EXPECT_FALSE(delivery.IsBusy());
  EXPECT_TRUE(delivery.has_begun());
}

TEST(BackgroundDeliveryTest, OneThatFailsIsNotForgotten) {
  BackgroundDelivery delivery;
  int order = 0;
  delivery.Begin([&] { return ++order != 1; });
  delivery.Begin([&] { return ++order == 2; });  // after the one before
  EXPECT_FALSE(delivery.Await());
  EXPECT_FALSE(delivery.Await());
  EXPECT_EQ(order, 2);
}

}  // namespace
}  // namespace strobe::internal
