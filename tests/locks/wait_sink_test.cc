#include "../../src/locks/wait_sink.h"

#include <cstdint>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

constinit WaitSink sink;

struct Seen {
  std::int64_t count = 0;
  std::int64_t total = 0;
};

TEST(WaitSink, TakesWaitsToItsTargetWhileItIsOpen) {
  Seen seen;
  const EventTarget target{
      .record =
          [](void* into, const SampledAmounts& amounts, StackKeeper* /*keeper*/) {
            static_cast<Seen*>(into)->count += amounts.count;
            static_cast<Seen*>(into)->total += amounts.total;
            return true;
          },
      .profiler = &seen};
  EXPECT_FALSE(sink.is_open());
  sink.Note(1000);
  EXPECT_TRUE(sink.Begin(target, /*interval_ns=*/1, [] {}));
  EXPECT_FALSE(sink.Begin(target, 1, [] {}));
  EXPECT_TRUE(sink.is_open());
  sink.Note(1000);
  sink.Note(2000);
  sink.Close();
  sink.Note(1000);
  EXPECT_EQ(seen.count, 2);
  EXPECT_EQ(seen.total, 3000);
  EXPECT_EQ(sink.untaken().count, 0);
}

}  // namespace
}  // namespace strobe::internal
