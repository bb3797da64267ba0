#include "strobe/runtime/control/fork_list.h"

#include <gtest/gtest.h>

#include <array>
#include <cstddef>

#include "strobe/platform/capture_target.h"
#include "strobe/platform/native.h"

namespace strobe::internal {
namespace {

class Counted : public GoesOnInChild {
 public:
  void RegisterInChild() override {}
  void StartInChild() override {}
};

// tests/integration/fork_test.cc forks.
TEST(ForkList, HasRoomForEachArena) {
  static constexpr auto kNothing = [] {};
  if (!NativePlatform::AtForkInChild(kNothing)) GTEST_SKIP() << "there are no forks here";
  std::array<Counted, kMaxArenas + 1> objects;
  for (std::size_t i = 0; i < kMaxArenas; ++i) EXPECT_TRUE(ForkList::Add(&objects[i]));
  EXPECT_FALSE(ForkList::Add(&objects[kMaxArenas]));
  ForkList::Remove(&objects[3]);
  EXPECT_TRUE(ForkList::Add(&objects[kMaxArenas]));
  for (Counted& object : objects) ForkList::Remove(&object);
}

}  // namespace
}  // namespace strobe::internal
