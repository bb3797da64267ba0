#include "strobe/runtime/drain/level_rows.h"

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/aggregate/aggregated_period.h"
#include "strobe/core/profile.h"
#include "strobe/provider/provider_list.h"

namespace strobe::internal {
namespace {

struct Level {
  std::vector<Address> leaf_first;
  std::int64_t open = 0;
};

// Has counted files that were opened, and knows those that are open.
struct OpenFiles {
  static constexpr bool kBringsEvents = true;
  static constexpr bool kHasLevels = true;
  static constexpr std::array<ValueType, 2> kValueTypes{ValueType{"opened", "count"},
                                                        ValueType{"open", "count"}};
  static inline std::vector<Level> levels;

  [[nodiscard]] bool enabled() const { return true; }
  template <class Visitor>
  void VisitLevels(Visitor&& visit) const {
    for (const Level& level : levels)
      visit(std::span<const Address>(level.leaf_first), StackEnd::kComplete,
            std::array<std::int64_t, 2>{0, level.open});
  }
};
struct Events {
  static constexpr bool kBringsEvents = true;
  static constexpr std::array<ValueType, 1> kValueTypes{ValueType{"events", "count"}};
  [[nodiscard]] bool enabled() const { return true; }
};
static_assert(LevelProvider<OpenFiles> && !LevelProvider<Events>);
static_assert(!LevelRows<ProviderList<Events>>::kHasLevels);

class LevelRowsTest : public ::testing::Test {
 protected:
  using Providers = ProviderList<Events, OpenFiles>;
  using Sums = std::map<Address, std::int64_t>;
  static_assert(LevelRows<Providers>::kHasLevels);

  LevelRowsTest() : recording_({0, 1, 2}, 1 << 20, {}) { recording_.AddThread(0, 0, "[live]"); }

  void Add() { rows_.Add(providers_, kept_, recording_, 0, 0); }
  // The open files by the leaf's address; by 0 where the stack is not known.
  Sums Take() {
    RecordedPeriod period = recording_.Take(LabelTable(), {});
    rows_.Forget();
    Profile profile;
    profile.value_types.resize(3);
    FillProfile(std::move(period.samples), profile);
    Sums open;
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      const Frame& frame = profile.frames[profile.stacks[profile.samples[i].stack].frame];
      open[frame.module == Frame::kPseudo ? 0 : frame.address] += profile.Values(i)[2];
      EXPECT_EQ(profile.Values(i)[0], 0);
      EXPECT_EQ(profile.Values(i)[1], 0);
    }
    return open;
  }

  KeptStacks kept_;
  Providers providers_{SamplingOptions()};
  Recording recording_;
  LevelRows<Providers> rows_;
};

TEST_F(LevelRowsTest, AreInEachPeriodWhatTheyAreAtItsEnd) {
  OpenFiles::levels = {{{0x1000, 0x2000}, 2}, {{0x1001, 0x2000}, 3}, {{0x1000, 0x2000}, 5}};
  Add();
  EXPECT_EQ(Take(), (Sums{{0x1000, 7}, {0x1001, 3}}));
  OpenFiles::levels = {{{0x1001, 0x2000}, 1}, {{}, 4}};
  Add();
  EXPECT_EQ(Take(), (Sums{{0, 4}, {0x1001, 1}}));
  OpenFiles::levels = {};
  Add();
  EXPECT_EQ(Take(), Sums());
}

TEST_F(LevelRowsTest, HaveTheStacksThatTheCollectorHasFinished) {
  OpenFiles::levels = {{{PendingFrame(7)}, 2}, {{PendingFrame(8)}, 3}};
  kept_.Add(7, std::vector<Address>{0x1000, 0x2000}, StackEnd::kTruncated);
  kept_.Add(9, std::vector<Address>{0x3000}, StackEnd::kTruncated);
  Add();
  EXPECT_EQ(Take(), (Sums{{0x1000, 2}, {0, 3}})) << "of one, the record has not come";
  kept_.Add(8, std::vector<Address>{0x1001, 0x2000}, StackEnd::kTruncated);
  Add();
  EXPECT_EQ(Take(), (Sums{{0x1000, 2}, {0x1001, 3}}));
}

TEST_F(LevelRowsTest, ReplaceThoseOfAPeriodThatWasNotTaken) {
  OpenFiles::levels = {{{0x1000, 0x2000}, 2}, {{}, 3}};
  Add();
  OpenFiles::levels = {{{0x1001, 0x2000}, 1}};
  Add();
  EXPECT_EQ(Take(), (Sums{{0x1001, 1}}));
}

}  // namespace
}  // namespace strobe::internal
