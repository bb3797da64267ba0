#include "strobe/runtime/threads/thread_registry.h"

#include <vector>

#include "../manual_traits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using Registry = ThreadRegistry<testing::ManualTraits>;
using Thread = Registry::Thread;

constexpr std::size_t kRegistryRingBytes = 4096;

std::vector<Thread*> Live(Registry& registry) {
  std::vector<Thread*> threads;
  registry.CopyLive(threads);
  return threads;
}

TEST(ThreadRegistry, AThreadKnowsItsThread) {
  Registry registry(4, kRegistryRingBytes);
  const auto thread =
      registry.Register({.id = 7, .stack = {.low = 0x1000, .high = 0x2000}}, "worker");
  ASSERT_TRUE(thread.ok()) << thread.status();
  EXPECT_EQ((*thread)->channel->thread_id, 7u);
  EXPECT_EQ((*thread)->name, "worker");
  EXPECT_EQ((*thread)->channel->stack.high, 0x2000u);
  EXPECT_NE((*thread)->channel->ring.Reserve(100), nullptr);
  EXPECT_THAT(Live(registry), ElementsAre(*thread));
  EXPECT_EQ(registry.live_count(), 1u);
  registry.Unregister(*thread);
  EXPECT_EQ(registry.live_count(), 0u);
}

TEST(ThreadRegistry, TheLimitIsAClearError) {
  Registry registry(2, kRegistryRingBytes);
  const auto first = registry.Register({.id = 1, .stack = {}}, "1");
  ASSERT_TRUE(registry.Register({.id = 2, .stack = {}}, "2").ok());
  const auto third = registry.Register({.id = 3, .stack = {}}, "3");
  EXPECT_EQ(third.status().code(), absl::StatusCode::kResourceExhausted);
  EXPECT_THAT(std::string(third.status().message()), HasSubstr("threads.max_threads"));
  EXPECT_THAT(std::string(third.status().message()), HasSubstr("(2)"));
  Stats stats;
  registry.AddTo(stats);
  EXPECT_EQ(stats.threads_registered, 2u);
  EXPECT_EQ(stats.threads_refused, 0u) << "the caller counts it";
  registry.CountRefused();
  registry.AddTo(stats);
  EXPECT_EQ(stats.threads_refused, 1u);
  EXPECT_EQ(stats.threads_ended, 0u);
  registry.Unregister(*first);
  registry.AddTo(stats);
  EXPECT_EQ(stats.threads_registered, 1u);
  EXPECT_EQ(stats.threads_ended, 1u);
  EXPECT_TRUE(registry.Register({.id = 3, .stack = {}}, "3").ok()) << "there is room again";
  for (Thread* thread : Live(registry)) registry.Unregister(thread);
}

struct EventTraits : testing::ManualTraits {
  using Providers = ProviderList<CpuTimeProvider, testing::ArchetypeEventProvider>;
};

TEST(ThreadRegistry, SharedThreadsAreNoRegistrations) {
  ThreadRegistry<EventTraits> registry(1, kRegistryRingBytes);
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(registry.Open().ok());
  const auto thread = registry.Register({.id = 1, .stack = {}}, "1");
  ASSERT_TRUE(thread.ok()) << thread.status();
  EXPECT_FALSE((*thread)->is_shared);
  EXPECT_EQ(registry.live_count(), 1u);
  std::vector<RegisteredThread<EventTraits>*> threads;
  registry.CopyAll(threads);
  ASSERT_EQ(threads.size(), 1 + ChannelArena<EventTraits>::kSharedChannels);
  for (std::uint32_t i = 1; i < threads.size(); ++i) {
    EXPECT_TRUE(threads[i]->is_shared);
    EXPECT_FALSE(threads[i]->is_ending) << "sessions attach it";
    EXPECT_EQ(threads[i]->channel, registry.arena()->Find(i - 1)) << "where events look for it";
  }
  registry.CopyLive(threads);
  EXPECT_THAT(threads, ElementsAre(*thread));
  registry.Unregister(*thread);
}

TEST(ThreadRegistry, AnyThreadMayEndFirst) {
  Registry registry(200, kRegistryRingBytes);
  std::vector<Thread*> threads;
  for (std::uint64_t i = 0; i < 150; ++i)
    threads.push_back(*registry.Register({.id = i, .stack = {}}, "t"));
  for (const std::size_t index : {0u, 149u, 75u, 74u, 1u}) registry.Unregister(threads[index]);
  EXPECT_EQ(registry.live_count(), 145u);
  for (std::size_t i = 0; i < Live(registry).size(); ++i)
    EXPECT_EQ(Live(registry)[i]->live_index, i);
  for (Thread* thread : Live(registry)) registry.Unregister(thread);
}

TEST(ThreadRegistry, WhileSomebodyCollectsAnEndedThreadWaitsForIt) {
  Registry registry(4, kRegistryRingBytes);
  registry.BeginCollecting();
  Thread* const thread = *registry.Register({.id = 1, .stack = {}}, "one");
  thread->channel->counters.drops[0] = 5;
  registry.Unregister(thread);
  EXPECT_THAT(registry.CopyRetired(), ElementsAre(thread));
  EXPECT_EQ(thread->name, "one") << "its records still need it";
  Thread* const other = *registry.Register({.id = 2, .stack = {}}, "two");
  EXPECT_NE(other, thread);
  registry.Unregister(other);
  EXPECT_THAT(registry.CopyRetired(), ElementsAre(thread, other));
  registry.ReclaimRetired(1);
  EXPECT_THAT(registry.CopyRetired(), ElementsAre(other));
  Stats stats;
  registry.AddTo(stats);
  EXPECT_EQ(stats.drops[0], 5u) << "what a thread counted outlives it";
  std::vector<Thread*> finished;
  Thread* const alive = *registry.Register({.id = 3, .stack = {}}, "three");
  registry.EndCollecting([&](Thread& one) { finished.push_back(&one); });
  EXPECT_THAT(finished, ElementsAre(other, alive));
  EXPECT_THAT(registry.CopyRetired(), IsEmpty());
  registry.Unregister(alive);
  EXPECT_THAT(registry.CopyRetired(), IsEmpty()) << "no collector runs";
}

TEST(ThreadRegistry, AReusedThreadBeginsWithAnEmptyRingAndNoCounters) {
  Registry registry(1, kRegistryRingBytes);
  Thread* const thread = *registry.Register({.id = 1, .stack = {}}, "one");
  ASSERT_NE(thread->channel->ring.Reserve(8), nullptr);
  thread->channel->ring.Commit(8);
  thread->channel->counters.time_ns = 3;
  registry.Unregister(thread);
  ASSERT_EQ(*registry.Register({.id = 2, .stack = {}}, "two"), thread);
  EXPECT_EQ(thread->channel->ring.used_bytes(), 0u);
  EXPECT_EQ(thread->channel->counters.time_ns, 0);
  EXPECT_EQ(thread->channel->thread_id, 2u);
  registry.Unregister(thread);
}

struct WithoutMemory : testing::ManualPlatform {
  static Mapping MapMemory(std::uint64_t /*bytes*/) { return {}; }
};
struct WithoutMemoryTraits : testing::ManualTraits {
  using Platform = WithoutMemory;
};

TEST(ThreadRegistry, WithoutMemoryForARingAThreadIsRefused) {
  ThreadRegistry<WithoutMemoryTraits> registry(4, kRegistryRingBytes);
  EXPECT_EQ(registry.Register({.id = 1, .stack = {}}, "one").status().code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(registry.live_count(), 0u);
}

}  // namespace
}  // namespace strobe::internal
