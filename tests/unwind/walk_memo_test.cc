#include "strobe/unwind/walk_memo.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstring>
#include <memory>

#include "walk_machine.h"

namespace strobe::testing {
namespace {

TEST(WalkMemo, ZeroBytesAreAnEmptyOne) {
  alignas(internal::WalkMemo) static std::byte bytes[sizeof(internal::WalkMemo)];
  EXPECT_EQ(reinterpret_cast<const internal::WalkMemo*>(bytes)->size(), 0u);
}

class WalkMemoTest : public WalkMachineTest {};

TEST_F(WalkMemoTest, OtherRulesShareNothing) {
  Call({1, 2, 3});
  walker_.Walk();
  EXPECT_EQ(walker_.Walk(2048, 2).shared, 0u);
  EXPECT_EQ(walker_.Walk(2048, 2).shared, 4u);
}

TEST_F(WalkMemoTest, NothingIsSharedAfterAClear) {
  Call({1, 2, 3});
  walker_.Walk();
  walker_.memo().Clear();
  EXPECT_EQ(walker_.Walk().shared, 0u);
}

TEST_F(WalkMemoTest, IsForgottenWhereItsMemoryIsLent) {
  Call({1, 2, 3});
  walker_.Walk();
  EXPECT_EQ(walker_.memo().size(), 4u);
  const auto lent = walker_.memo().TakeForCopy();
  EXPECT_GE(lent.size(), 24u * internal::WalkMemo::kMaxFrames);
  std::memset(lent.data(), 0xFF, lent.size());
  EXPECT_EQ(walker_.memo().size(), 0u);
  EXPECT_EQ(walker_.Walk().shared, 0u);
  EXPECT_EQ(walker_.Walk().shared, 4u);
}

TEST_F(WalkMemoTest, AnotherStackSharesNothing) {
  Call({1, 2, 3});
  walker_.Walk();
  walker_.memo().Begin(1, Machine::kTop);
  EXPECT_EQ(walker_.memo().size(), 4u) << "the same rules, on the same stack";
  walker_.memo().Begin(1, Machine::kTop - 8);
  EXPECT_EQ(walker_.memo().size(), 0u);
}

}  // namespace
}  // namespace strobe::testing
