#include "../../src/encode/profile_comments.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(ProfileCommentsTest, OfAnEmptyProfileTheyAreThreeLinesWithoutExceptions) {
  EXPECT_THAT(ProfileComments(Profile()),
              ElementsAre("strobe: program , process 0, period 0, threads: 0 sampled, 0 registered",
                          "samples: 0; drops: 0; stack ends: 0",
                          "cost: handler 0.000 ms (estimated), collector 0.000 ms of CPU time in 0 "
                          "drains, memory 0.0 KiB"));
}

TEST(ProfileCommentsTest, TheMachineHasALine) {
  Profile profile;
  profile.machine = LabelSet({{"cpus", 4}, {"cpu_quota", "1.5"}});
  const std::vector<std::string> lines = ProfileComments(profile);
  ASSERT_EQ(lines.size(), 4U);
  EXPECT_EQ(lines[3], "machine: cpu_quota=1.5; cpus=4");
}

TEST(ProfileCommentsTest, DropsAreCountedByTheirReasons) {
  Profile profile;
  profile.stats.drops[static_cast<std::size_t>(DropReason::kRingFull)] = 3;
  profile.stats.drops[static_cast<std::size_t>(DropReason::kNoMemory)] = 4;
  EXPECT_THAT(ProfileComments(profile)[1],
              HasSubstr("; drops: 7 (ring full 3, no memory 4); stack ends: 0"));
}

TEST(ProfileCommentsTest, WhatHappenedIsSaidInItsLine) {
  Profile profile;
  Stats& stats = profile.stats;
  stats.threads_on_timers = 1;
  stats.threads_on_random_timers = 2;
  stats.threads_at_instants = 3;
  stats.threads_refused = 4;
  stats.periods_extended = 5;
  stats.program_end = "killed by signal 9";
  stats.moments_dropped = 6;
  stats.waits_interrupted = 7;
  stats.waits_hidden = 8;
  stats.handler_replaced = 9;
  stats.waits_abandoned = 10;
  stats.out_of_memory = 11;
  const std::vector<std::string> lines = ProfileComments(profile);
  ASSERT_EQ(lines.size(), 3U);
  EXPECT_THAT(lines[0], EndsWith("0 registered; on timers: 1; on random timers: 2; at random "
                                 "instants: 3; registrations refused: 4; periods extended: 5; the "
                                 "program has ended: killed by signal 9"));
  EXPECT_THAT(lines[1], EndsWith("stack ends: 0; times beyond the memory limit: 6; waits "
                                 "interrupted: 15; handler replaced: 9"));
  EXPECT_THAT(lines[2], EndsWith("memory 0.0 KiB; waits abandoned: 10; calls and tasks that memory "
                                 "ran out in: 11"));
}

TEST(ProfileCommentsTest, OutputsAreNamedWhereThereAreSeveral) {
  Profile profile;
  profile.stats.exports_failed = 3;
  profile.stats.outputs.resize(2);
  profile.stats.outputs[0].exports_failed = 3;  // the only output has no name
  profile.stats.outputs[1].name = "output 2 (.pb.gz)";
  profile.stats.outputs[1].exports_dropped = 1;
  EXPECT_THAT(ProfileComments(profile)[0],
              EndsWith("; exports failed: 3; profiles never delivered by output 2 (.pb.gz): 1"));
}

TEST(ProfileCommentsTest, AnAmountThatIsLessThanNothingIsNotSaid) {
  Profile profile;
  profile.stats.amount_dropped = -5;
  EXPECT_THAT(ProfileComments(profile)[0], Not(HasSubstr("amount")));
}

}  // namespace
}  // namespace strobe::internal
