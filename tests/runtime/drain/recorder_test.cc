#include "strobe/runtime/drain/recorder.h"

#include <cstdint>
#include <optional>
#include <vector>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using Row = std::vector<std::int64_t>;

class RecorderTest : public ::testing::Test {
 protected:
  bool Add(std::size_t shared, const std::vector<Address>& leaf_first, const Row& row) {
    return recorder_.Add(0, {.generation = 1, .shared = shared, .leaf_first = leaf_first}, row,
                         kNoContext);
  }
  std::int64_t SumAt(std::size_t place, std::size_t column = 0) {
    return recorder_.At(place)->Sum(column);
  }

  Recorder recorder_{{0, 1}, std::size_t{1} << 20, {}};
};

TEST_F(RecorderTest, EachRecordGoesToTheRecordingsThatAreOpenThen) {
  recorder_.AddThread(0, 7, "thread");
  EXPECT_TRUE(Add(0, {0x22, 0x11}, {1, 10}));
  const auto first = recorder_.Begin({1}, {});
  EXPECT_TRUE(Add(1, {0x33}, {2, 20}));
  const auto second = recorder_.Begin({0, 1}, {});
  EXPECT_TRUE(Add(2, {}, {4, 40}));
  EXPECT_TRUE(recorder_.ExtendLast(0, Row{8, 80}, kNoContext));
  recorder_.AddPseudo(0, PseudoFrame::kResidual, Row{16, 160});
  EXPECT_EQ(SumAt(*first), 20 + 40 + 80 + 160);
  recorder_.End(*first);
  EXPECT_TRUE(Add(0, {0x44}, {32, 320}));
  EXPECT_EQ(SumAt(*second, 0), 4 + 8 + 16 + 32);
  EXPECT_EQ(SumAt(*second, 1), 40 + 80 + 160 + 320);
  EXPECT_EQ(recorder_.continuous().Sum(0), 63);
  EXPECT_EQ(recorder_.continuous().Sum(1), 630);
}

TEST_F(RecorderTest, EachHasTheLivesOfItsOwnTime) {
  recorder_.AddThread(0, 7, "thread");
  recorder_.AddLife(0, {.begin_ns = 1, .cpu_ns = 10});
  const std::size_t place = *recorder_.Begin({1}, {});
  recorder_.AddLife(0, {.begin_ns = 1, .cpu_ns = 5});
  const auto cpu_ns = [](Recording& recording) {
    return recording.Take(ProcessLabels(), {}).samples.lives.Find(0)->cpu_ns;
  };
  EXPECT_EQ(cpu_ns(recorder_.continuous()), 15);
  EXPECT_EQ(cpu_ns(*recorder_.At(place)), 5);
}

TEST_F(RecorderTest, ThereIsALimitAndAnEndMakesRoom) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < kMaxRecordings; ++i) places.push_back(*recorder_.Begin({0}, {}));
  EXPECT_EQ(recorder_.Begin({0}, {}), std::nullopt);
  recorder_.End(places[1]);
  EXPECT_EQ(recorder_.Begin({0}, {}), places[1]);
}

TEST_F(RecorderTest, NothingSharesWithAStackThatOneOfThemDoesNotKnow) {
  recorder_.AddThread(0, 7, "thread");
  EXPECT_TRUE(Add(0, {0x22, 0x11}, {1, 10}));
  const std::size_t place = *recorder_.Begin({0}, {});
  recorder_.At(place)->ForgetLast(0);
  EXPECT_TRUE(recorder_.ExtendLast(0, Row{2, 20}, kNoContext));
  EXPECT_EQ(SumAt(place), 2) << "[overflow]";
  EXPECT_FALSE(Add(1, {0x33}, {4, 40}));
  EXPECT_EQ(SumAt(place), 6);
  recorder_.ForgetLast(0);
  EXPECT_FALSE(recorder_.ExtendLast(0, Row{8, 80}, kNoContext));
  EXPECT_EQ(SumAt(place), 6);
}

TEST_F(RecorderTest, OneThatHasLastedLongerKnowsWhatHasGone) {
  Module module;
  module.start = 0x1000;
  module.limit = 0x2000;
  recorder_.SetModules(1, ModuleMap({module}));
  const std::size_t place = *recorder_.Begin({0}, {});
  recorder_.SetModules(2, ModuleMap());
  EXPECT_TRUE(recorder_.WasUnloaded(1, 0x1100));
  static_cast<void>(recorder_.continuous().Take(ProcessLabels(), {}));
  EXPECT_TRUE(recorder_.WasUnloaded(1, 0x1100));
  recorder_.End(place);
  EXPECT_FALSE(recorder_.WasUnloaded(1, 0x1100));
}

TEST_F(RecorderTest, MemoryIsThatOfAll) {
  const std::size_t before = recorder_.memory_bytes();
  const std::size_t place = *recorder_.Begin({0}, {});
  EXPECT_EQ(recorder_.memory_bytes(), before + recorder_.At(place)->memory_bytes());
  recorder_.End(place);
  EXPECT_EQ(recorder_.memory_bytes(), before);
}

}  // namespace
}  // namespace strobe::internal
