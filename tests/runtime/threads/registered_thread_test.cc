#include "strobe/runtime/threads/registered_thread.h"

#include "gtest/gtest.h"
#include "strobe/default_traits.h"

namespace strobe::internal {
namespace {

using Thread = RegisteredThread<DefaultTraits>;

// 10,000 idle threads are to cost about half a KiB each, with what the aggregator knows of each.
// Three words of that are for a trace: they would cost a cache miss elsewhere. Four are for the
// off-CPU time, two for a random timer, and three for the thread's life.
static_assert(sizeof(Thread) + sizeof(SampleChannel<DefaultTraits>) <= 640);

TEST(RegisteredThread, IsAwaitedWhileAnActiveChannelHasARequest) {
  SampleChannel<DefaultTraits> channel;
  Thread thread;
  thread.Use(channel, 0);
  EXPECT_EQ(thread.token, &channel.token);
  EXPECT_FALSE(thread.is_awaited(thread));
  channel.cells[1].requested = 5;
  EXPECT_FALSE(thread.is_awaited(thread)) << "the session has ended";
  channel.is_active = true;
  EXPECT_TRUE(thread.is_awaited(thread));
  channel.cells[1].requested = 0;
  EXPECT_FALSE(thread.is_awaited(thread));
}

TEST(ProviderAccount, MissesWhatWasCreditedAndHasNotCome) {
  ProviderCell cell;
  ProviderAccount account;
  account.Receive(3);
  cell.credited = 5;
  EXPECT_EQ(account.Settle(cell), 5);
  EXPECT_EQ(account.missing(), 2);
  account.Receive(4);
  EXPECT_EQ(account.missing(), -2);
}

}  // namespace
}  // namespace strobe::internal
