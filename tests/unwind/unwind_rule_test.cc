#include "strobe/unwind/unwind_rule.h"

#include <gtest/gtest.h>

namespace strobe {
namespace {

TEST(UnwindRule, HoldsItsCountsUpToTheirLimits) {
  for (const auto kind : {UnwindRule::Kind::kFromSp, UnwindRule::Kind::kFromFp}) {
    for (const std::uint32_t cfa : {0u, 1u, 2u, UnwindRule::kMaxCfaWords}) {
      for (const std::uint32_t ra : {0u, 1u, UnwindRule::kMaxSlotWords}) {
        for (const std::uint32_t fp : {0u, 2u, UnwindRule::kMaxSlotWords - 1}) {
          const UnwindRule rule = UnwindRule::Frame(kind, cfa, ra, fp);
          EXPECT_EQ(rule.kind(), kind);
          EXPECT_TRUE(rule.is_frame());
          EXPECT_EQ(rule.is_from_fp(), kind == UnwindRule::Kind::kFromFp);
          EXPECT_EQ(rule.cfa_words(), cfa);
          EXPECT_EQ(rule.cfa_bytes(), Address{cfa} * 8);
          EXPECT_EQ(rule.ra_words(), ra);
          EXPECT_EQ(rule.fp_words(), fp);
          EXPECT_EQ(rule.fp_slot_words(), fp != 0 ? fp : ra);
          EXPECT_EQ(UnwindRule::FromBits(rule.bits()), rule);
        }
      }
    }
  }
}

TEST(UnwindRule, NothingIsKnownOfARuleThatNobodySet) {
  EXPECT_EQ(UnwindRule(), UnwindRule::Unknown());
  EXPECT_EQ(UnwindRule::Unknown().kind(), UnwindRule::Kind::kSpecial);
  EXPECT_EQ(UnwindRule::Unknown().special_number(), 0u);
  EXPECT_EQ(SpecialRule().cfa, SpecialRule::Cfa::kUnknown);
}

TEST(UnwindRule, KindsDiffer) {
  EXPECT_EQ(UnwindRule::Stop().kind(), UnwindRule::Kind::kStop);
  EXPECT_NE(UnwindRule::Stop(), UnwindRule::Unknown());
  EXPECT_FALSE(UnwindRule::Stop().is_frame());
  EXPECT_FALSE(UnwindRule::Unknown().is_frame());
  constexpr std::uint32_t kManySpecials = 1u << 20;
  EXPECT_EQ(UnwindRule::Special(kManySpecials).special_number(), kManySpecials);
  EXPECT_EQ(UnwindRule::Special(kManySpecials).kind(), UnwindRule::Kind::kSpecial);
}

}  // namespace
}  // namespace strobe
