#include "../../../src/cli/profile/short_processes.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../made_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/core/stack.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;

class PoolShortProcessesTest : public ::testing::Test {
 protected:
  struct Row {
    const char* function;  // nullptr: [residual]
    std::int64_t samples;
    std::int64_t cpu_ns;
  };
  // A process that was sampled each 10 ns. Half of the time of each sampled row is in one moment.
  void Add(const char* program, const std::vector<Row>& rows) {
    MadeProfile made({{"samples", "count"}, {"cpu", "nanoseconds"}});
    made.profile().program = program;
    made.profile().period = 10;
    made.profile().period_type = {"cpu", "nanoseconds"};
    for (const Row& row : rows) {
      const std::string name = row.function == nullptr ? "?" : row.function;
      if (row.function == nullptr) {
        made.profile().frames[made.Frame(name)] = {static_cast<Address>(PseudoFrame::kResidual),
                                                   Frame::kPseudo};
      }
      const std::uint32_t number = made.Add({name.c_str()}, {row.samples, row.cpu_ns});
      if (row.samples > 0) made.AddMoment(number, 5, {row.samples, row.cpu_ns / 2});
    }
    processes_.push_back(made.Finish());
  }
  void Pool() {
    std::vector<LoadedProfile*> all;
    for (LoadedProfile& process : processes_) all.push_back(&process);
    PoolShortProcesses(all);
  }

  std::vector<LoadedProfile> processes_;
};

// The longer ones happen to have the samples.
TEST_F(PoolShortProcessesTest, ThoseOfOneProgramHaveTheSamplesOfAll) {
  Add("tool", {{"f", 1, 8}});
  Add("tool", {{nullptr, 0, 6}});
  Add("tool", {{"g", 2, 26}, {"h", 1, 13}});
  Add("tool", {{nullptr, 0, 7}});
  Pool();
  EXPECT_THAT(RowsOf(processes_[0]), ElementsAre("f 1 15"));
  EXPECT_THAT(RowsOf(processes_[1]), ElementsAre("[residual] 0 0"));
  EXPECT_THAT(RowsOf(processes_[2]), ElementsAre("g 2 30", "h 1 15"));
  EXPECT_EQ(processes_[0].profile.moment_values, (std::vector<std::int64_t>{1, 7}));
}

TEST_F(PoolShortProcessesTest, ALongOneStandsForItself) {
  Add("tool", {{"f", 4, 40}, {nullptr, 0, 10}});
  Add("tool", {{nullptr, 0, 6}});
  Add("tool", {{"g", 1, 2}});
  Pool();
  EXPECT_THAT(RowsOf(processes_[0]), ElementsAre("f 4 40", "[residual] 0 10"));
  EXPECT_THAT(RowsOf(processes_[2]), ElementsAre("g 1 8"));
}

TEST_F(PoolShortProcessesTest, EachProgramStandsForItself) {
  Add("sed", {{nullptr, 0, 3}});
  Add("grep", {{"f", 1, 4}});
  Pool();
  EXPECT_THAT(RowsOf(processes_[0]), ElementsAre("[residual] 0 3"));
  EXPECT_THAT(RowsOf(processes_[1]), ElementsAre("f 1 4"));
}

TEST_F(PoolShortProcessesTest, WithoutSamplesNothingChanges) {
  Add("tool", {{nullptr, 0, 3}});
  Add("tool", {{nullptr, 0, 4}});
  Pool();
  EXPECT_THAT(RowsOf(processes_[0]), ElementsAre("[residual] 0 3"));
  EXPECT_THAT(RowsOf(processes_[1]), ElementsAre("[residual] 0 4"));
}

TEST_F(PoolShortProcessesTest, WithoutAPeriodNothingChanges) {
  Add("tool", {{"f", 1, 8}});
  Add("tool", {{nullptr, 0, 6}});
  for (LoadedProfile& process : processes_) process.profile.period = 0;
  Pool();
  EXPECT_THAT(RowsOf(processes_[0]), ElementsAre("f 1 8"));
  EXPECT_THAT(RowsOf(processes_[1]), ElementsAre("[residual] 0 6"));
}

}  // namespace
}  // namespace strobe::internal
