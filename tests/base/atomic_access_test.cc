#include "strobe/base/atomic_access.h"

#include <atomic>
#include <cstdint>
#include <thread>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

static_assert(AtomicWord<std::int64_t> && AtomicWord<unsigned long long>);
static_assert(!AtomicWord<double> && !AtomicWord<std::int64_t*>);

TEST(AtomicAccess, LoadsWhatWasStored) {
  std::int64_t word = 1;
  AtomicStore(word, -2, std::memory_order_relaxed);
  EXPECT_EQ(AtomicLoad(word, std::memory_order_relaxed), -2);
  const std::uint64_t constant = 3;
  EXPECT_EQ(AtomicLoad(constant, std::memory_order_acquire), 3u);
}

// ThreadSanitizer would report the accesses to `message` if the word did not order them.
TEST(AtomicAccess, AReleasedWordShowsWhatWasWrittenBefore) {
  constexpr int kRounds = 1000;
  std::uint64_t turn = 0;
  int message = 0;
  std::thread writer([&] {
    for (int i = 0; i < kRounds; ++i) {
      while (AtomicLoad(turn, std::memory_order_acquire) % 2 != 0) std::this_thread::yield();
      message = i;
      AtomicStore(turn, turn + 1, std::memory_order_release);
    }
  });
  for (int i = 0; i < kRounds; ++i) {
    while (AtomicLoad(turn, std::memory_order_acquire) % 2 != 1) std::this_thread::yield();
    EXPECT_EQ(message, i);
    AtomicStore(turn, turn + 1, std::memory_order_release);
  }
  writer.join();
}

}  // namespace
}  // namespace strobe::internal
