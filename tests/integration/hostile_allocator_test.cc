// Forks of a program whose allocator has a lock of its own, while other threads allocate without a
// pause. A child that only executes another program needs no memory, so neither it nor its parent
// may be made to wait for that lock.
//
// STROBE_TEST_FORKS says how many forks the three storms make in all.
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <mutex>
#include <new>
#include <string>
#include <thread>
#include <vector>

#include "forked_child.h"
#include "gtest/gtest.h"

namespace {

// The allocator's lock. A sleeping one: threads that wait for it must not use up the processors.
constinit std::mutex allocator_mutex;
constinit std::atomic<bool> is_hostile{false};

// The allocation, counted from 1, in the middle of which a test wants to do something else; 0 for
// none.
constinit std::atomic<int> stops_at{0};
constinit std::atomic<int> allocations{0};
constinit std::atomic<bool> has_stopped{false};

void StopWhereWanted() {
  if (stops_at.load(std::memory_order_relaxed) == 0 || ++allocations != stops_at.load()) return;
  has_stopped = true;
  has_stopped.notify_all();
  while (true) pause();
}

[[gnu::noinline]] void* Allocate(std::size_t bytes) {
  StopWhereWanted();
  if (!is_hostile.load(std::memory_order_relaxed)) return std::malloc(bytes);
  const std::lock_guard lock(allocator_mutex);
  return std::malloc(bytes);
}

[[gnu::noinline]] void Free(void* memory) {
  if (!is_hostile.load(std::memory_order_relaxed)) return std::free(memory);
  const std::lock_guard lock(allocator_mutex);
  std::free(memory);
}

// Whether the allocator holds its lock over a fork at all, and whether its handlers of fork are
// those registered first, or last.
enum class Handlers { kNone, kFirst, kLast };
constinit std::atomic<Handlers> handlers{Handlers::kNone};

template <Handlers kOnes>
void RegisterHandlers() {
  const auto lock = [] {
    if (is_hostile.load() && handlers.load() == kOnes) allocator_mutex.lock();
  };
  const auto unlock = [] {
    if (is_hostile.load() && handlers.load() == kOnes) allocator_mutex.unlock();
  };
  pthread_atfork(lock, unlock, unlock);
}

}  // namespace

void* operator new(std::size_t bytes) {
  if (void* memory = Allocate(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { Free(memory); }
void operator delete(void* memory, std::size_t /*bytes*/) noexcept { Free(memory); }

namespace strobe {
namespace {

using testing::KeepingProfiler;
using testing::KeptProfiles;
using testing::RunInChild;
using testing::RunRegistered;

// A storm that makes no progress for so long hangs.
constexpr unsigned kPatienceSeconds = 60;

int ForksOfAStorm() {
  constexpr int kStorms = 3;
  constexpr int kDefaultForks = testing::kIsSanitized ? 90 : 900;
  const char* const text = std::getenv("STROBE_TEST_FORKS");
  return (text == nullptr ? kDefaultForks : std::atoi(text)) / kStorms;
}

// The profilers between the two pairs of handlers.
KeepingProfiler& FirstProfiler() {
  static auto* const profiler = [] {
    RegisterHandlers<Handlers::kFirst>();
    auto* const made =
        new KeepingProfiler({.sampling = {.cpu_frequency_hz = 1000, .wall_frequency_hz = 100}});
    RegisterHandlers<Handlers::kLast>();
    return made;
  }();
  return *profiler;
}

class HostileAllocatorStorm : public ::testing::TestWithParam<Handlers> {
 protected:
  void SetUp() override {
    if (testing::kIsThreadSanitizer)
      GTEST_SKIP() << "ThreadSanitizer ends the child of a process with threads";
    FirstProfiler();
    KeptProfiles::Take();
    handlers = GetParam();
    is_hostile = true;
  }
  void TearDown() override { is_hostile = false; }
};

[[noreturn]] void ExecuteTrue() {
  char name[] = "true";
  char* const arguments[] = {name, nullptr};
  char* const no_environment[] = {nullptr};
  execve("/bin/true", arguments, no_environment);
  _exit(127);
}

TEST_P(HostileAllocatorStorm, OfForksThatExecute) {
  KeepingProfiler& profiler = FirstProfiler();
  KeepingProfiler other({.sampling = {.cpu_frequency_hz = 500}});
  const BasicScopedProfiler session(profiler);
  std::atomic<bool> is_done{false};
  std::vector<std::thread> threads;
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([&] {
      RunRegistered(profiler, "allocates", [&] {
        for (std::size_t bytes = 1; !is_done.load(); bytes = bytes * 5 % 1021)
          delete[] new char[bytes];
      });
    });
  }
  threads.emplace_back([&] {
    while (!is_done.load()) {
      EXPECT_TRUE(other.Start().ok());
      RunRegistered(other, "comes and goes", [] {});
      EXPECT_TRUE(other.Stop().ok());
      // Kept, they would grow without bound, and each fork copies the tables of their pages.
      KeptProfiles::Take();
    }
  });
  RunRegistered(profiler, "forks", [&] {
    for (int i = 0; i < ForksOfAStorm(); ++i) {
      alarm(kPatienceSeconds);
      const pid_t child = fork();
      if (child == 0) {
        alarm(kPatienceSeconds);
        // A child's child, too.
        if (i % 4 == 0) {
          const pid_t inner = fork();
          if (inner == 0) ExecuteTrue();
          int status = -1;
          if (inner < 0 || waitpid(inner, &status, 0) != inner || status != 0) _exit(126);
        }
        ExecuteTrue();
      }
      int status = -1;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      ASSERT_EQ(status, 0) << "fork " << i;
    }
  });
  is_done = true;
  for (std::thread& thread : threads) thread.join();
  alarm(0);
}

// Runs in a process that has never used a profiler: its first session stands still in an allocation
// when it forks.
void ForkInTheMiddle(int allocation) {
  std::thread first([allocation] {
    stops_at = allocation;
    KeepingProfiler profiler;
    {
      const BasicScopedProfiler session(profiler);
      RunRegistered(profiler, "first", [] { testing::BurnCpu(1'000'000); });
    }
    stops_at = 0;
    has_stopped = true;  // not so many
    has_stopped.notify_all();
  });
  first.detach();
  has_stopped.wait(false);
  const bool was_long = stops_at.exchange(0) != 0;
  const int status = RunInChild([] {
    KeepingProfiler profiler;
    STROBE_CHILD_CHECK(profiler.Start().ok());
    RunRegistered(profiler, "child", [] { testing::BurnCpu(1'000'000); });
    STROBE_CHILD_CHECK(profiler.Stop().ok());
  });
  _exit(status != 0 ? 1 : was_long ? 0 : 2);
}

// No thread may be in the middle of something, the first call of a function say, that a child could
// never end.
TEST(HostileAllocator, ForkAtAnyAllocationLeavesTheChildWhole) {
  if (testing::kIsSanitized)
    GTEST_SKIP() << "the child of a process with threads cannot use a sanitizer's allocator";
  for (int allocation = 1;; allocation += 1 + allocation / 3) {
    const int status = RunInChild([&] { ForkInTheMiddle(allocation); });
    ASSERT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) != 1) << allocation << ": " << status;
    if (WEXITSTATUS(status) == 2) break;
  }
}

INSTANTIATE_TEST_SUITE_P(Handlers, HostileAllocatorStorm,
                         ::testing::Values(Handlers::kNone, Handlers::kFirst, Handlers::kLast),
                         [](const auto& info) {
                           return std::string(info.param == Handlers::kNone    ? "None"
                                              : info.param == Handlers::kFirst ? "First"
                                                                               : "Last");
                         });

}  // namespace
}  // namespace strobe
