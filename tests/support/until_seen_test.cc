#include "support/until_seen.h"

#include <atomic>
#include <thread>

#include "gtest/gtest-spi.h"
#include "gtest/gtest.h"
#include "support/caller.h"

namespace strobe::testing {
namespace {

Caller CalledAt(Caller where = Caller::Here()) { return where; }

TEST(Caller, IsThePlaceOfTheCall) {
  EXPECT_EQ(CalledAt().line, __LINE__);
  EXPECT_STREQ(CalledAt().file, __FILE__);
}

TEST(WorkUntil, WorksAsOftenAsItTakes) {
  int work = 0;
  EXPECT_TRUE(WorkUntil([&] { return work == 3; }, [&] { ++work; }));
  EXPECT_EQ(work, 3);
  EXPECT_TRUE(WorkUntil([] { return true; }, [&] { ++work; }));
  EXPECT_EQ(work, 3);
}

TEST(WorkUntil, FailsTheTestAndEndsIfItSeesNothing) {
  EXPECT_NONFATAL_FAILURE(WorkUntil<1'000'000>([] { return false; }, [] {}), "not seen");
}

TEST(WaitUntil, FailsTheTestAndEndsIfItSeesNothing) {
  EXPECT_NONFATAL_FAILURE(WaitUntil<2>([] { return false; }), "not seen in 2 looks");
}

TEST(WaitUntil, SeesWhatAnotherThreadDoes) {
  std::atomic<bool> is_done{false};
  std::atomic<int> looks{0};
  std::thread other([&] {
    looks.wait(0);
    is_done = true;
  });
  EXPECT_TRUE(WaitUntil([&] {
    ++looks;
    looks.notify_all();
    return is_done.load();
  }));
  EXPECT_GE(looks.load(), 1);
  other.join();
}

}  // namespace
}  // namespace strobe::testing
