#include "strobe/runtime/control/exit_list.h"

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

struct Running : StoppedAtExit {
  void StopAtExit() override { ++stops; }
  int stops = 0;
};

int times_asked = 0;
bool AtExit(void (*function)()) {
  EXPECT_EQ(function, &ExitList::StopAll);
  ++times_asked;
  return true;
}

TEST(ExitList, StopsOnceWhatIsStillThere) {
  Running stays;
  Running goes;
  ExitList::Add(3, &stays, &AtExit);
  ExitList::Add(7, &goes, &AtExit);
  EXPECT_EQ(times_asked, 1);
  EXPECT_TRUE(ExitList::Remove(7, &goes));
  ExitList::StopAll();
  ExitList::StopAll();
  EXPECT_EQ(stays.stops, 1);
  EXPECT_EQ(goes.stops, 0);
  EXPECT_FALSE(ExitList::Remove(3, &stays)) << "the exit has it";
}

}  // namespace
}  // namespace strobe::internal
