#include "strobe/worker/shared/export_marks.h"

#include <gtest/gtest.h>

#include <map>

#include "../open_area.h"

namespace strobe::internal {
namespace {

class ExportMarksTest : public ::testing::Test {
 protected:
  void Take(std::uint32_t index, std::uint64_t thread_id, std::int64_t cpu_ns) {
    SharedRegistration& shared = SharedAt(index);
    shared.state = SharedRegistrationState::kTaken;
    shared.since_cpu_ns = clocks_[thread_id] = cpu_ns;
    marks_.Begin(index, thread_id);
  }
  void Leave(std::uint32_t index, std::int64_t cpu_ns) {
    SharedAt(index).end_cpu_ns = cpu_ns;
    marks_.GiveBack(index);
    EXPECT_EQ(SharedAt(index).state.load(), SharedRegistrationState::kFree);
  }
  void EndPeriod(std::uint64_t sequence, const std::vector<std::int64_t>& sums = {}) {
    marks_.EndPeriod(sequence, sums, 1000 + static_cast<std::int64_t>(sequence),
                     [this](std::uint64_t thread_id) { return clocks_[thread_id]; });
  }
  SharedRegistration& SharedAt(std::uint32_t index) { return *area_.At(index); }
  // What would be lost with the worker now.
  std::int64_t Lost() {
    std::int64_t lost_ns = area_.header().unexported_cpu_ns.load();
    for (std::uint32_t i = 0; i < 4; ++i) {
      if (SharedAt(i).state.load() == SharedRegistrationState::kTaken)
        lost_ns += clocks_[i + 1] - SharedAt(i).since_cpu_ns;
    }
    return lost_ns;
  }

  SharedArea area_ = *testing::CreateOpenArea(1, 64, 64 * 4096);
  std::map<std::uint64_t, std::int64_t> clocks_;  // registration n has thread n + 1
  ExportMarks marks_{area_};
};

TEST_F(ExportMarksTest, AnExportMovesTheBeginOfEachAccount) {
  Take(0, 1, 100);
  Take(1, 2, 0);
  clocks_ = {{1, 150}, {2, 30}};
  EndPeriod(0);
  clocks_ = {{1, 170}, {2, 31}};
  EXPECT_EQ(Lost(), 70 + 31);
  marks_.NoteExported(0);
  EXPECT_EQ(SharedAt(0).since_cpu_ns, 150);
  EXPECT_EQ(SharedAt(0).since_ns, 1000);
  EXPECT_EQ(Lost(), 20 + 1);
}

TEST_F(ExportMarksTest, TheValuesOfExportedPeriodsAreAdded) {
  const auto exported = [this](std::size_t type) {
    return area_.header().values_exported[type].load();
  };
  EndPeriod(0, {1, 20});
  EndPeriod(1, {3, -5});
  EXPECT_EQ(exported(1), 0);
  marks_.NoteExported(1);
  EXPECT_EQ(exported(1), 0) << "one before it is not exported";
  marks_.NoteExported(0);
  EXPECT_EQ(exported(0), 4);
  EXPECT_EQ(exported(1), 15);
  EXPECT_EQ(exported(2), 0);
}

TEST_F(ExportMarksTest, AThreadThatEndsIsCountedUntilItsPeriodIsExported) {
  Take(0, 1, 0);
  clocks_[1] = 40;
  EndPeriod(0);
  Leave(0, 100);
  EXPECT_EQ(Lost(), 100);
  Take(0, 1, 0);  // another thread in the registration
  clocks_[1] = 7;
  EndPeriod(1);
  EXPECT_EQ(Lost(), 107);
  marks_.NoteExported(0);
  EXPECT_EQ(Lost(), 60 + 7) << "what the first period had of it has arrived";
  EXPECT_EQ(SharedAt(0).since_cpu_ns, 0) << "the other thread's";
  marks_.NoteExported(1);
  EXPECT_EQ(Lost(), 0);
}

TEST_F(ExportMarksTest, APeriodCountsWhenAllBeforeItDo) {
  Take(0, 1, 0);
  clocks_[1] = 10;
  EndPeriod(0);
  clocks_[1] = 25;
  EndPeriod(1);
  marks_.NoteExported(1);
  EXPECT_EQ(Lost(), 25);
  marks_.NoteExported(0);
  EXPECT_EQ(Lost(), 0);
  marks_.NoteExported(7);  // never ended
}

TEST_F(ExportMarksTest, AtTheEndAllHasBeenExported) {
  Take(0, 1, 0);
  clocks_[1] = 10;
  EndPeriod(0, {1});
  clocks_[1] = 25;
  EndPeriod(1, {2});
  marks_.End();
  EXPECT_EQ(Lost(), 0);
  EXPECT_EQ(area_.header().values_exported[0].load(), 3);
  SharedAt(0).since_cpu_ns = 30;  // with another worker
  marks_.NoteExported(0);
  marks_.NoteExported(1);
  EXPECT_EQ(SharedAt(0).since_cpu_ns, 30);
  EXPECT_EQ(area_.header().values_exported[0].load(), 3);
}

TEST_F(ExportMarksTest, UnknownClocksChangeNothing) {
  Take(0, 1, -1);
  clocks_[1] = 10;
  EndPeriod(0);
  marks_.NoteExported(0);
  Leave(0, -1);
  EXPECT_EQ(area_.header().unexported_cpu_ns.load(), 0);
}

}  // namespace
}  // namespace strobe::internal
