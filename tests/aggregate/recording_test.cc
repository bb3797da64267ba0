#include "strobe/aggregate/recording.h"

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/testing/profile_check.h"

namespace strobe {
namespace {

using ::testing::ElementsAre;
using Row = std::vector<std::int64_t>;

constexpr std::size_t kRecordingBytes = std::size_t{1} << 20;

// The values of each stack, by its frames from the leaf; a pseudo-frame's address is its number.
std::map<std::vector<Address>, Row> ValuesOf(RecordedPeriod period, std::size_t columns) {
  Profile profile;
  profile.value_types.resize(columns);
  FillProfile(std::move(period.samples), profile);
  std::map<std::vector<Address>, Row> values;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    std::vector<Address> stack;
    for (std::uint32_t node = profile.samples[i].stack; node != 0;
         node = profile.stacks[node].parent)
      stack.push_back(profile.frames[profile.stacks[node].frame].address);
    values[stack] = Row(profile.Values(i).begin(), profile.Values(i).end());
  }
  return values;
}

bool Add(Recording& recording, std::uint32_t thread, std::size_t shared,
         const std::vector<Address>& leaf_first, const Row& row) {
  return recording.Add(thread, {.generation = 1, .shared = shared, .leaf_first = leaf_first}, row,
                       kNoContext);
}

TEST(Recording, KeepsItsColumns) {
  Recording recording({2, 0}, kRecordingBytes, {});
  recording.AddThread(3, 7, "thread");
  EXPECT_TRUE(Add(recording, 3, 0, {0x22, 0x11}, {1, 10, 100}));
  EXPECT_TRUE(recording.ExtendLast(3, Row{2, 20, 200}, kNoContext));
  EXPECT_EQ(recording.Sum(0), 300);
  EXPECT_THAT(ValuesOf(recording.Take(ProcessLabels(), {}), 2),
              ElementsAre(std::pair(std::vector<Address>{0x22, 0x11}, Row{300, 3})));
}

TEST(Recording, MomentsHaveTheirColumnsAndTheTimeOfDay) {
  Recording recording({2, 0}, kRecordingBytes, {.monotonic_ns = 100, .unix_ns = 5000});
  recording.AddThread(3, 7, "thread");
  const std::vector<Address> stack = {0x22, 0x11};
  recording.Add(3, {.leaf_first = stack}, Row{1, 10, 100}, kNoContext, 120);
  recording.ExtendLast(3, Row{2, 20, 200}, kNoContext, 95);
  recording.ExtendLast(3, Row{0, 9, 0}, kNoContext, 130);  // nothing of it is in the columns
  Profile profile;
  profile.value_types.resize(2);
  FillProfile(recording.Take(ProcessLabels(), {.monotonic_ns = 200, .unix_ns = 5101}).samples,
              profile);
  EXPECT_EQ(testing::CheckProfile(profile), "");
  ASSERT_EQ(profile.moments.size(), 2u);
  EXPECT_EQ(profile.moments[0].time_ns, 4995);
  EXPECT_EQ(profile.moments[1].time_ns, 5020);
  EXPECT_EQ(profile.moment_values, (Row{200, 2, 100, 1}));
}

TEST(Recording, APeriodLastsFromItsBeginToItsEnd) {
  Recording recording({0}, kRecordingBytes, {.monotonic_ns = 100, .unix_ns = 5000});
  const RecordedPeriod first =
      recording.Take(ProcessLabels(), {.monotonic_ns = 130, .unix_ns = 6000});
  EXPECT_EQ(first.time_ns, 5000);
  EXPECT_EQ(first.duration_ns, 30);
  const RecordedPeriod second =
      recording.Take(ProcessLabels(), {.monotonic_ns = 131, .unix_ns = 0});
  EXPECT_EQ(second.time_ns, 6000);
  EXPECT_EQ(second.duration_ns, 1);
}

// The next record says only what has changed since a stack that was before the begin.
TEST(Recording, OneThatJoinsKnowsTheLastStacksAndNothingOfTheirValues) {
  Recording first({0}, kRecordingBytes, {});
  for (std::uint32_t thread = 0; thread < 3; ++thread) first.AddThread(thread, thread, "thread");
  EXPECT_TRUE(Add(first, 0, 0, {0x33, 0x22, 0x11}, {5}));
  EXPECT_TRUE(Add(first, 1, 0, {0x55}, {7}));
  first.RemoveThread(2);
  Recording second({0}, kRecordingBytes, {});
  second.Join(first);
  for (Recording* recording : {&first, &second}) {
    EXPECT_TRUE(Add(*recording, 0, 2, {0x44}, {1}));
    EXPECT_TRUE(Add(*recording, 0, 1, {}, {8}));
    EXPECT_TRUE(recording->ExtendLast(1, Row{2}, kNoContext));
    recording->AddThread(2, 9, "later");
    EXPECT_FALSE(recording->ExtendLast(2, Row{3}, kNoContext)) << "it has no stack yet";
    EXPECT_TRUE(Add(*recording, 2, 0, {0x66}, {4}));
    recording->RemoveThread(2);
  }
  EXPECT_THAT(ValuesOf(second.Take(ProcessLabels(), {}), 1),
              ElementsAre(std::pair(std::vector<Address>{0x11}, Row{8}),
                          std::pair(std::vector<Address>{0x44, 0x22, 0x11}, Row{1}),
                          std::pair(std::vector<Address>{0x55}, Row{2}),
                          std::pair(std::vector<Address>{0x66}, Row{4})));
  EXPECT_EQ(ValuesOf(first.Take(ProcessLabels(), {}), 1)[{0x55}], Row{9});
}

TEST(Recording, OneThatJoinsKnowsTheModulesThatAreLoaded) {
  const auto map = [](const char* path) {
    Module module;
    module.start = 0x1000;
    module.limit = 0x2000;
    module.path = path;
    return ModuleMap({module});
  };
  Recording first({0}, kRecordingBytes, {});
  first.SetModules(1, map("/one"));
  Recording second({0}, kRecordingBytes, {});
  second.Join(first);
  EXPECT_FALSE(second.WasUnloaded(1, 0x1100));
  for (Recording* recording : {&first, &second}) recording->SetModules(2, map("/two"));
  EXPECT_TRUE(second.WasUnloaded(1, 0x1100));
  static_cast<void>(first.Take(ProcessLabels(), {}));
  EXPECT_FALSE(first.WasUnloaded(1, 0x1100)) << "a new period knows what is loaded now";
  EXPECT_TRUE(second.WasUnloaded(1, 0x1100));
}

TEST(Recording, CountsAThreadWithoutRoomForItsLifeOnceAPeriod) {
  Recording recording({0}, kRecordingBytes, {});
  constexpr std::uint32_t kThreads = 2000;
  for (std::uint32_t i = 0; i < kThreads; ++i) recording.AddThread(i, i + 1, "thread");
  const auto add_parts = [&] {
    for (std::uint32_t i = 0; i < kThreads; ++i) recording.AddLife(i, {.begin_ns = 1, .cpu_ns = 2});
  };
  const auto take = [&] {
    RecordedPeriod period = recording.Take(ProcessLabels(), {});
    Profile profile;
    profile.value_types.resize(1);
    FillProfile(std::move(period.samples), profile);
    std::uint64_t unlisted = period.overflows.threads;
    for (const ProfileThread& thread : profile.threads) unlisted += thread.cpu_ns >= 0 ? 1 : 0;
    EXPECT_EQ(unlisted, kThreads);
    return period.overflows.threads;
  };
  add_parts();
  add_parts();
  const std::uint64_t unlisted = take();
  EXPECT_GT(unlisted, 0u);
  EXPECT_LT(unlisted, kThreads);
  add_parts();
  EXPECT_EQ(take(), unlisted);
  EXPECT_EQ(recording.overflows().threads, 2 * unlisted);
  // Another thread of the same number counts for itself.
  add_parts();
  recording.RemoveThread(kThreads - 1);
  recording.AddThread(kThreads - 1, 1, "another");
  add_parts();
  EXPECT_EQ(recording.Take(ProcessLabels(), {}).overflows.threads, unlisted + 1);
}

TEST(Recording, CountsWhatItFoldsInEachPeriod) {
  Recording recording({0}, kRecordingBytes, {});
  recording.AddThread(0, 1, "thread");
  EXPECT_FALSE(Add(recording, 0, 3, {0x22}, {1})) << "shares with nothing";
  EXPECT_EQ(recording.Take(ProcessLabels(), {}).overflows.stacks, 1u);
  EXPECT_TRUE(Add(recording, 0, 0, {0x22}, {1}));
  EXPECT_EQ(recording.Take(ProcessLabels(), {}).overflows.stacks, 0u);
}

}  // namespace
}  // namespace strobe
