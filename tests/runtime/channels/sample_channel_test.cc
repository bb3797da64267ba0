#include "strobe/runtime/channels/sample_channel.h"

#include <array>
#include <cstring>
#include <new>
#include <set>
#include <span>
#include <thread>
#include <type_traits>
#include <vector>

#include "../manual_traits.h"
#include "gtest/gtest.h"
#include "strobe/default_traits.h"
#include "strobe/runtime/drain/sample_intake.h"
#include "strobe/runtime/threads/thread_registry.h"

namespace strobe::internal {
namespace {

using testing::ManualPlatform;
using testing::ManualTraits;
using Channel = SampleChannel<ManualTraits>;

static_assert(std::is_trivially_copyable_v<SampleChannel<DefaultTraits>>);
static_assert(sizeof(SampleChannel<DefaultTraits>) == 6 * kCacheLineBytes);

constexpr std::size_t kChannelRingBytes = 4096;

// A registered thread that has been sampled twice, on the calling thread.
class CopiedChannel : public ::testing::Test {
 protected:
  void SetUp() override {
    ManualPlatform::Reset();
    thread_ = *registry_.Register({.id = 5, .stack = {.low = 16, .high = 32}}, "thread");
    registry_.arena()->max_frames = 16;
    Channel& channel = *thread_->channel;
    for (ProviderCell& cell : channel.cells) cell.Reset();
    channel.is_active = true;
    thread_->next = RegistrationLinks();
    RegistrationLinks() = thread_;
    channel.timer_period_ns = 10;
    channel.cells[1].requested = 500;
    EXPECT_TRUE(ManualPlatform::Deliver(channel.token.Pack(), 3, 0x400000));
    EXPECT_TRUE(ManualPlatform::Deliver(channel.token.Pack(), 4, 0x400001));
    RegistrationLinks() = thread_->next;
    channel.is_active = false;
  }
  void TearDown() override { registry_.Unregister(thread_); }

  ThreadRegistry<ManualTraits> registry_{4, kChannelRingBytes};
  RegisteredThread<ManualTraits>* thread_ = nullptr;
};

// The chunk's bytes at another address, while those at the first are gone.
TEST_F(CopiedChannel, IsDrainedAtAnotherAddress) {
  Channel& channel = *thread_->channel;
  const std::span<std::byte> chunk = registry_.arena()->MappingOf(channel).bytes;
  const std::uint32_t captures = channel.counters.captures;
  const std::vector<std::byte> saved(chunk.begin(), chunk.end());
  const auto other = ManualPlatform::MapMemory(chunk.size());
  std::memcpy(other.bytes.data(), saved.data(), saved.size());
  const auto offset = reinterpret_cast<std::byte*>(&channel) - chunk.data();
  std::memset(chunk.data(), 0xA5, chunk.size());

  auto& copy = *std::launder(reinterpret_cast<Channel*>(other.bytes.data() + offset));
  const auto* const memo = reinterpret_cast<const std::byte*>(&copy.memo());
  EXPECT_GE(memo, other.bytes.data());
  EXPECT_LE(memo + sizeof(WalkMemo), other.bytes.data() + other.bytes.size());
  SampleIntake intake(ManualTraits::Providers::Layout(), {0, 1, 2}, std::size_t{1} << 20, {});
  intake.SetModules(0, ModuleMap());
  const std::uint32_t thread = intake.AddThread(copy.thread_id, "copied");
  SampleIntake::Values sum{};
  for (auto record = copy.ring.Peek(); !record.empty(); record = copy.ring.Peek()) {
    EXPECT_GE(record.data(), other.bytes.data());
    const auto finish = [](std::span<const std::byte>, StackDelta&) { return false; };
    const SampleIntake::Result result = intake.Add(thread, record, finish);
    EXPECT_EQ(result.outcome, SampleIntake::Outcome::kAdded);
    for (std::size_t i = 0; i < sum.size(); ++i) sum[i] += result.values[i];
    copy.ring.Pop();
  }
  EXPECT_EQ(sum[0], 2);
  EXPECT_EQ(sum[1], 70);
  EXPECT_EQ(sum[2], 500);
  EXPECT_EQ(copy.ring.corruptions(), 0u);
  EXPECT_EQ(copy.cells[0].credited, 70);
  EXPECT_EQ(copy.counters.captures, captures);
  ManualPlatform::UnmapMemory(other);
  std::memcpy(chunk.data(), saved.data(), saved.size());
}

TEST(CaptureCounters, AddUpAndClear) {
  CaptureCounters counters;
  counters.captures = 4;
  counters.drops[static_cast<std::size_t>(DropReason::kNoRegisters)] = 3;
  counters.ends[static_cast<std::size_t>(StackEnd::kBroken)] = 2;
  counters.time_ns = 100;
  Stats stats;
  counters.AddTo(stats);
  counters.AddTo(stats);
  EXPECT_EQ(stats.drops[static_cast<std::size_t>(DropReason::kNoRegisters)], 6u);
  EXPECT_EQ(stats.drops[static_cast<std::size_t>(DropReason::kRingFull)], 0u);
  EXPECT_EQ(stats.stack_ends[static_cast<std::size_t>(StackEnd::kBroken)], 4u);
  EXPECT_EQ(stats.handler_time_ns, 200);
  counters.Clear();
  counters.AddTo(stats);
  EXPECT_EQ(stats.handler_time_ns, 200);
  EXPECT_EQ(counters.captures, 4u)
      << "the channel's memory was touched by these, whichever thread has it next";
}

TEST(WaitUntilClear, WaitsForTheFlagButNotForEver) {
  SharedFlag flag{false};
  EXPECT_TRUE(WaitUntilClear(flag, 0));
  flag = true;
  EXPECT_FALSE(WaitUntilClear(flag, 1'000'000));
  std::thread other([&] { flag = false; });
  EXPECT_TRUE(WaitUntilClear(flag, 60'000'000'000));
  other.join();
}

TEST(CaptureNote, TellsTheFramePointerOfAnyStack) {
  for (const Address sp : {Address{0x7FFF'1234'5678}, Address{0x5555'0000'0008}, Address{0x1000}}) {
    const std::uint64_t packed = CaptureNote::Pack({.sp = sp, .fp = sp + 0x120});
    EXPECT_EQ(CaptureNote::Unpack(packed, sp).sp, sp);
    EXPECT_EQ(CaptureNote::Unpack(packed, sp).fp, sp + 0x120);
    EXPECT_NE(CaptureNote::Unpack(packed, sp + 8).sp, sp + 8) << "another place";
  }
  const Address sp = 0x7FFF'1234'5678;
  for (const Address fp : {Address{0}, sp - 8, sp + 1, sp})
    EXPECT_EQ(CaptureNote::Unpack(CaptureNote::Pack({.sp = sp, .fp = fp}), sp).fp, 0U) << fp;
}

}  // namespace
}  // namespace strobe::internal
