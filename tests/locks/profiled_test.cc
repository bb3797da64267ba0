#include "strobe/locks/profiled.h"

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/clock/system_clock.h"
#include "strobe/locks/contention_sampling.h"
#include "strobe/testing/latch.h"

namespace strobe {
namespace {

using std::chrono::milliseconds;

template <class Mutex>
concept HasTimedForms = requires(Mutex& mutex) {
  mutex.try_lock_for(milliseconds(1));
  mutex.try_lock_until(std::chrono::system_clock::now());
};
template <class Mutex>
concept HasSharedForms = requires(Mutex& mutex) {
  mutex.lock_shared();
  mutex.try_lock_shared();
  mutex.unlock_shared();
};
template <class Mutex>
concept HasSharedTimedForms = requires(Mutex& mutex) {
  mutex.try_lock_shared_for(milliseconds(1));
  mutex.try_lock_shared_until(std::chrono::system_clock::now());
};
template <class Mutex>
constexpr bool kHasTheSameForms =
    HasTimedForms<Mutex> == HasTimedForms<Profiled<Mutex>>&& HasSharedForms<Mutex> ==
    HasSharedForms<Profiled<Mutex>>&& HasSharedTimedForms<Mutex> ==
    HasSharedTimedForms<Profiled<Mutex>>;
static_assert(kHasTheSameForms<std::mutex> && kHasTheSameForms<std::timed_mutex>);
static_assert(kHasTheSameForms<std::recursive_mutex>);
static_assert(kHasTheSameForms<std::recursive_timed_mutex>);
static_assert(kHasTheSameForms<std::shared_mutex> && kHasTheSameForms<std::shared_timed_mutex>);
static_assert(sizeof(Profiled<std::mutex>) == sizeof(std::mutex));

// Has each contention recorded here while it lives. At an interval of 1 ns, a wait of so many
// nanoseconds is left out with the probability e^-nanoseconds: never, if it takes a system call.
class Contentions {
 public:
  Contentions() {
    EXPECT_EQ(internal::BeginContentions(target_, {.interval_ns = 1, .absl_mutexes = false}),
              absl::OkStatus());
  }
  ~Contentions() { internal::EndContentions(); }

  std::atomic<std::int64_t> count{0};
  std::atomic<std::int64_t> delay_ns{0};

 private:
  static bool Record(void* self, const SampledAmounts& amounts, internal::StackKeeper* /*keeper*/) {
    auto& contentions = *static_cast<Contentions*>(self);
    ++contentions.count;
    contentions.delay_ns += amounts.total;
    return true;
  }
  const internal::EventTarget target_{.record = &Record, .profiler = this};
};

// Counts its calls. Each wait takes a millisecond, and ends with the lock or without.
struct FakeMutex {
  bool is_free = true;
  bool comes_free = true;
  int tries = 0;
  int waits = 0;

  bool try_lock() {
    ++tries;
    return is_free;
  }
  void lock() { Wait(); }
  void unlock() {}
  template <class Time>
  bool try_lock_for(const Time& /*time*/) {
    return Wait();
  }
  template <class Time>
  bool try_lock_until(const Time& /*time*/) {
    return Wait();
  }
  bool Wait() {
    ++waits;
    const auto end = std::chrono::steady_clock::now() + milliseconds(1);
    while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
    return comes_free;
  }
  FakeMutex* native_handle() { return this; }
};

TEST(Profiled, AsksAFreeMutexOnce) {
  const Contentions contentions;
  Profiled<FakeMutex> mutex;
  mutex.lock();
  EXPECT_TRUE(mutex.try_lock_for(milliseconds(1)));
  EXPECT_TRUE(mutex.try_lock_until(std::chrono::steady_clock::now()));
  EXPECT_EQ(mutex.native_handle()->tries, 3);
  EXPECT_EQ(mutex.native_handle()->waits, 0);
  EXPECT_EQ(contentions.count, 0);
}

TEST(Profiled, TellsHowLongAWaitWas) {
  const Contentions contentions;
  Profiled<FakeMutex> mutex;
  mutex.native_handle()->is_free = false;
  mutex.lock();
  EXPECT_EQ(contentions.count, 1);
  EXPECT_GE(contentions.delay_ns, 1'000'000);
  EXPECT_TRUE(mutex.try_lock_for(milliseconds(1)));
  mutex.native_handle()->comes_free = false;
  EXPECT_FALSE(mutex.try_lock_until(std::chrono::steady_clock::now()));
  EXPECT_EQ(contentions.count, 3) << "also where the lock was not to be had";
  EXPECT_GE(contentions.delay_ns, 3'000'000);
  EXPECT_FALSE(mutex.try_lock());
  EXPECT_EQ(contentions.count, 3) << "there is no wait in it";
  EXPECT_EQ(mutex.native_handle()->waits, 3);
}

TEST(Profiled, WaitsAlsoWithoutASampling) {
  Profiled<FakeMutex> mutex;
  mutex.native_handle()->is_free = false;
  mutex.lock();
  EXPECT_TRUE(mutex.try_lock_for(milliseconds(1)));
  EXPECT_EQ(mutex.native_handle()->waits, 2);
  const Contentions contentions;
  EXPECT_EQ(contentions.count, 0);
}

template <class Mutex>
class ProfiledMutex : public ::testing::Test {};
using Mutexes =
    ::testing::Types<std::mutex, std::timed_mutex, std::recursive_mutex, std::recursive_timed_mutex,
                     std::shared_mutex, std::shared_timed_mutex>;
TYPED_TEST_SUITE(ProfiledMutex, Mutexes);

// Locks in each way that the standard library has, while other threads do.
TYPED_TEST(ProfiledMutex, ExcludesOthersAsItsMutexDoes) {
  const Contentions contentions;
  constexpr int kThreads = 4;
  constexpr int kRounds = 2000;
  Profiled<TypeParam> mutex;
  Profiled<TypeParam> other;
  int rounds = 0;
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) {
        if (i % 3 == 0) {
          const std::lock_guard lock(mutex);
          ++rounds;
        } else if (i % 3 == 1) {
          const std::scoped_lock lock(other, mutex);
          ++rounds;
        } else {
          std::unique_lock lock(mutex, std::try_to_lock);
          if (!lock) lock.lock();
          ++rounds;
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(rounds, kThreads * kRounds);
}

// The mutex is locked; another thread asks for it, and gets it when this one has yielded for a
// while.
template <class Mutex>
void LetAnotherThreadWait(Profiled<Mutex>& mutex) {
  testing::Latch is_tried(1);
  std::thread waiter([&] {
    EXPECT_FALSE(mutex.try_lock());
    is_tried.count_down();
    mutex.lock();
    mutex.unlock();
  });
  is_tried.wait();
  const auto end = std::chrono::steady_clock::now() + milliseconds(1);
  while (std::chrono::steady_clock::now() < end) std::this_thread::yield();
  mutex.unlock();
  waiter.join();
}

TYPED_TEST(ProfiledMutex, CountsAWaitForAnotherThread) {
  constexpr int kMostRounds = 10'000;
  const Contentions contentions;
  Profiled<TypeParam> mutex;
  // A waiter may come too late to wait.
  for (int round = 0; round < kMostRounds && contentions.count == 0; ++round) {
    mutex.lock();
    LetAnotherThreadWait(mutex);
  }
  EXPECT_EQ(contentions.count, 1);
}

template <class Mutex>
class ProfiledTimedMutex : public ::testing::Test {};
using TimedMutexes =
    ::testing::Types<std::timed_mutex, std::recursive_timed_mutex, std::shared_timed_mutex>;
TYPED_TEST_SUITE(ProfiledTimedMutex, TimedMutexes);

TYPED_TEST(ProfiledTimedMutex, CountsWaitsThatEndWithoutTheLock) {
  const Contentions contentions;
  const SystemClock clock;
  Profiled<TypeParam> mutex;
  mutex.lock();
  std::int64_t most_ns = 0;
  std::thread([&] {
    const std::int64_t begin_ns = clock.MonotonicNs();
    EXPECT_FALSE(mutex.try_lock_for(milliseconds(2)));
    EXPECT_EQ(contentions.count, 1);
    EXPECT_GE(contentions.delay_ns, 1'750'000) << "a coarse clock may say a bit less";
    EXPECT_FALSE(mutex.try_lock_until(std::chrono::steady_clock::now() + milliseconds(2)));
    most_ns = clock.MonotonicNs() - begin_ns;
  }).join();
  mutex.unlock();
  EXPECT_EQ(contentions.count, 2);
  EXPECT_LE(contentions.delay_ns, most_ns);
}

TEST(Profiled, CountsWaitsOfReaders) {
  const Contentions contentions;
  Profiled<std::shared_timed_mutex> mutex;
  {
    const std::shared_lock first(mutex);
    EXPECT_TRUE(mutex.try_lock_shared()) << "readers do not wait for readers";
    mutex.unlock_shared();
    std::thread([&] {
      const std::shared_lock second(mutex);
      EXPECT_FALSE(mutex.try_lock());
    }).join();
  }
  EXPECT_EQ(contentions.count, 0);
  {
    const std::lock_guard writer(mutex);
    std::thread([&] {
      EXPECT_FALSE(mutex.try_lock_shared());
      EXPECT_FALSE(mutex.try_lock_shared_for(milliseconds(1)));
      EXPECT_FALSE(mutex.try_lock_shared_until(std::chrono::steady_clock::now() + milliseconds(1)));
    }).join();
  }
  EXPECT_EQ(contentions.count, 2);
}

TEST(Profiled, IsLockedAgainByItsThreadWhereItsMutexIs) {
  const Contentions contentions;
  Profiled<std::recursive_mutex> mutex;
  const std::lock_guard outer(mutex);
  const std::lock_guard inner(mutex);
  EXPECT_EQ(contentions.count, 0);
}

// Two threads hand a ball to and fro.
TEST(Profiled, IsWaitedWithAtAConditionVariable) {
  const Contentions contentions;
  constexpr int kThrows = 1000;
  Profiled<std::mutex> mutex;
  std::condition_variable_any changed;
  int throws = 0;
  const auto play = [&](int player) {
    std::unique_lock lock(mutex);
    while (throws < kThrows) {
      changed.wait(lock, [&] { return throws % 2 == player || throws >= kThrows; });
      if (throws < kThrows) ++throws;
      changed.notify_all();
    }
  };
  std::thread other([&] { play(1); });
  play(0);
  other.join();
  EXPECT_EQ(throws, kThrows);
}

}  // namespace
}  // namespace strobe
