#include "strobe/runtime/threads/thread_probes.h"

#include "../manual_traits.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using testing::ManualPlatform;
using testing::ManualTraits;

TEST(ThreadProbes, AThreadHasOneProbeForEachOfItsThreads) {
  ManualPlatform::Reset();
  ManualPlatform::With([](auto& state) { state.cpu_ns = {{1, 10}, {2, 20}}; });
  SampleChannel<ManualTraits> channel;
  RegisteredThread<ManualTraits> thread;
  thread.Use(channel, 70);
  channel.token.index = 70;
  channel.thread_id = 1;
  ThreadProbes<ManualTraits> probes;
  EXPECT_EQ(probes.Of(thread).seen_cpu_ns(), -1);
  probes.Of(thread).Poll();
  EXPECT_EQ(probes.Of(thread).seen_cpu_ns(), 10) << "the same probe";
  channel.thread_id = 2;
  ++channel.token.use;
  EXPECT_EQ(probes.Of(thread).seen_cpu_ns(), -1);
  probes.Of(thread).Poll();
  EXPECT_EQ(probes.Of(thread).seen_cpu_ns(), 20);
  probes.Forget(thread);
  EXPECT_EQ(probes.Of(thread).seen_cpu_ns(), -1);
  channel.token.index = 1000;
  probes.Forget(thread);  // that never had one
}

}  // namespace
}  // namespace strobe::internal
