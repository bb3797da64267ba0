#include "strobe/runtime/control/fork_list.h"

#include <array>
#include <cstddef>

#include "gtest/gtest.h"
#include "strobe/platform/capture_target.h"

namespace strobe::internal {
namespace {

struct ForkFollower : FollowsForks {
  void NoteBeforeFork() override {}
  bool GoOnInChild() override { return false; }
  void StartInChild() override {}
};

// tests/integration/followed_forks_test.cc forks.
TEST(ForkList, HasRoomForEachArena) {
  std::array<ForkFollower, kMaxArenas + 1> objects;
  for (std::size_t i = 0; i < kMaxArenas; ++i) EXPECT_TRUE(ForkList::Add(&objects[i]));
  EXPECT_FALSE(ForkList::Add(&objects[kMaxArenas]));
  ForkList::Remove(&objects[3]);
  EXPECT_TRUE(ForkList::Add(&objects[kMaxArenas]));
  for (ForkFollower& object : objects) ForkList::Remove(&object);
}

}  // namespace
}  // namespace strobe::internal
