#include "../../src/platform/own_threads.h"

#include <cstdint>
#include <list>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

// Of processes that do not exist.
constexpr std::uint64_t kForks = 1'000'000;

std::int64_t FakeClock(std::uint64_t thread_id) {
  return thread_id == 7 ? -1 : static_cast<std::int64_t>(thread_id) * 1000;
}
std::int64_t SumNs(std::uint64_t forks) { return OwnThreadsCpuTimeNs(forks, &FakeClock); }

TEST(OwnThreadsTest, AThreadIsMarkedAsLongAsItsMarkLives) {
  {
    const OwnThreadMark mark(11, kForks, &FakeClock);
    EXPECT_TRUE(IsOwnThread(11, kForks));
    EXPECT_FALSE(IsOwnThread(12, kForks));
    EXPECT_FALSE(IsOwnThread(11, kForks + 1)) << "a fork's child has no thread of its parent";
  }
  EXPECT_FALSE(IsOwnThread(11, kForks));
}

TEST(OwnThreadsTest, TheCpuTimeOfEndedThreadsStaysCounted) {
  const std::int64_t before_ns = SumNs(kForks);
  {
    const OwnThreadMark first(11, kForks, &FakeClock);
    const OwnThreadMark second(20, kForks, &FakeClock);
    EXPECT_EQ(SumNs(kForks) - before_ns, 31'000);
    EXPECT_EQ(SumNs(kForks + 1) - before_ns, 0) << "they run in another process";
  }
  EXPECT_EQ(SumNs(kForks) - before_ns, 31'000);
  EXPECT_EQ(SumNs(kForks + 1) - before_ns, 31'000);
}

TEST(OwnThreadsTest, AThreadWithoutAClockCountsForNothing) {
  const std::int64_t before_ns = SumNs(kForks);
  {
    const OwnThreadMark mark(7, kForks, &FakeClock);
    EXPECT_EQ(SumNs(kForks), before_ns);
  }
  EXPECT_EQ(SumNs(kForks), before_ns);
}

TEST(OwnThreadsTest, MoreThreadsThanAreMarkedDoNoHarm) {
  std::list<OwnThreadMark> marks;
  for (std::uint64_t id = 0; id < kMaxOwnThreads; ++id)
    marks.emplace_back(100 + id, kForks, &FakeClock);
  {
    const OwnThreadMark one_more(500, kForks, &FakeClock);
    EXPECT_FALSE(IsOwnThread(500, kForks));
  }
  for (std::uint64_t id = 0; id < kMaxOwnThreads; ++id) EXPECT_TRUE(IsOwnThread(100 + id, kForks));
  marks.pop_front();
  const OwnThreadMark in_its_place(500, kForks, &FakeClock);
  EXPECT_TRUE(IsOwnThread(500, kForks));
}

TEST(OwnThreadsTest, AForksChildHasThePlacesOfItsParentsThreads) {
  std::list<OwnThreadMark> of_parent;
  for (std::uint64_t id = 0; id < kMaxOwnThreads; ++id)
    of_parent.emplace_back(100 + id, kForks, &FakeClock);
  const OwnThreadMark mark(11, kForks + 1, &FakeClock);
  EXPECT_TRUE(IsOwnThread(11, kForks + 1));
}

}  // namespace
}  // namespace strobe::internal
