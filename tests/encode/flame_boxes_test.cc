#include "../../src/encode/svg/flame_boxes.h"

#include <cstdint>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/core/stack.h"
#include "strobe/testing/profiles.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using testing::ProfileBuilder;
using testing::ProfileHead;

constexpr FlameBoxes::Limits kNoLimits{.least_share = 0, .max_boxes = 1000, .max_levels = 1000};

// main calls heavy and light; light and the root end in code that is not there.
struct Calls {
  Calls() {
    for (const char* name : {"main", "heavy", "light"}) {
      symbols.functions.push_back({.name = name, .system_name = name});
      symbols.frames.push_back(
          {.function = builder.AddFrame(0x10 * symbols.functions.size(), Frame::kNoModule)});
    }
    const std::uint32_t lost = builder.AddPseudoFrame(PseudoFrame::kLost);
    symbols.frames.emplace_back();
    builder.AddThread(7, "main");
    builder.AddSample(0, {0}, {1, 5});
    builder.AddSample(0, {0, 2}, {1, 10});
    builder.AddSample(0, {0, 1}, {1, 80});
    builder.AddSample(0, {lost}, {1, 3});
    builder.AddSample(0, {0, 2, lost}, {1, 2});
  }

  // "level name begin+amount", and "(functions)" of those that are not drawn.
  [[nodiscard]] std::vector<std::string> Texts(const FlameBoxes::Limits& limits,
                                               std::size_t column = 1) const {
    const ProfileView view = *ProfileView::Make(profile, symbols);
    const FlameBoxes boxes = *FlameBoxes::Make(view, column, limits);
    std::vector<std::string> texts;
    for (const FlameBox& box : boxes.boxes()) {
      const std::string name = box.function == FlameBox::kNoFunction
                                   ? absl::StrCat("(", box.functions, ")")
                                   : std::string(boxes.Text(boxes.function(box).short_name));
      texts.push_back(absl::StrCat(box.level, " ", name, " ", box.begin, "+", box.amount));
    }
    return texts;
  }

  Profile profile = ProfileHead();
  Symbols symbols;
  ProfileBuilder builder{profile};
};

TEST(FlameBoxesTest, CalleesLieSideBySideBelowTheirCallerTheWidestFirst) {
  EXPECT_THAT(Calls().Texts(kNoLimits), ElementsAre("0 main 0+97", "0 [lost] 97+3", "1 heavy 0+80",
                                                    "1 light 80+12", "2 [lost] 80+2"));
  EXPECT_THAT(Calls().Texts(kNoLimits, 0), ElementsAre("0 main 0+4", "0 [lost] 4+1", "1 light 0+2",
                                                       "1 heavy 2+1", "2 [lost] 0+1"))
      << "of the other value type";
}

TEST(FlameBoxesTest, WhatIsTooNarrowIsOneBoxThatCounts) {
  EXPECT_THAT(Calls().Texts({.least_share = 0.2, .max_boxes = 1000, .max_levels = 1000}),
              ElementsAre("0 main 0+97", "0 (1) 97+3", "1 heavy 0+80", "1 (2) 80+12"));
}

TEST(FlameBoxesTest, WhatIsBeyondTheOtherLimitsIsToo) {
  EXPECT_THAT(Calls().Texts({.least_share = 0, .max_boxes = 2, .max_levels = 1000}),
              ElementsAre("0 main 0+97", "0 (1) 97+3", "1 heavy 0+80", "1 (2) 80+12"));
  EXPECT_THAT(Calls().Texts({.least_share = 0, .max_boxes = 1000, .max_levels = 1}),
              ElementsAre("0 main 0+97", "0 [lost] 97+3", "1 (3) 0+92"));
}

TEST(FlameBoxesTest, MarksAreWhatStacksEndInThatIsNotCode) {
  const Calls calls;
  const ProfileView view = *ProfileView::Make(calls.profile, calls.symbols);
  const FlameBoxes boxes = *FlameBoxes::Make(view, 1, kNoLimits);
  EXPECT_THAT(boxes.marks(), ElementsAre(Pair("[lost]", 5)));
  EXPECT_EQ(boxes.total(), 100);
  EXPECT_EQ(boxes.levels(), 3U);
}

TEST(FlameBoxesTest, EmptyProfilesHaveNone) {
  const Symbols symbols;
  for (const Profile& profile : {Profile{}, ProfileHead()}) {
    const absl::StatusOr<ProfileView> view = ProfileView::Make(profile, symbols);
    ASSERT_TRUE(view.ok()) << view.status();
    const absl::StatusOr<FlameBoxes> boxes = FlameBoxes::Make(*view, 0, kNoLimits);
    ASSERT_TRUE(boxes.ok()) << boxes.status();
    EXPECT_THAT(boxes->boxes(), IsEmpty());
    EXPECT_EQ(boxes->total(), 0);
  }
}

}  // namespace
}  // namespace strobe::internal
