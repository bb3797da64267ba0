// A fork's child runs on, unprofiled and unharmed, and may begin a session of its own. The parent
// goes on as before.
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "forked_child.h"
#include "gtest/gtest.h"
#include "strobe/own_parts.h"
#include "support/until_seen.h"

namespace strobe {
namespace {

using testing::BurnCpu;
using testing::CpuBounds;
using testing::KeepingProfiler;
using testing::KeptProfiles;
using testing::RunInChild;
using testing::RunRegistered;
using testing::SumByName;
using testing::WorkUntil;

class Fork : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::kIsThreadSanitizer)
      GTEST_SKIP() << "ThreadSanitizer ends the child of a process with threads";
    testing::HoldKeptProfilesOverForks();
    KeptProfiles::Take();
  }
  // Children that allocate need an allocator that is held over a fork, as glibc's is.
  static constexpr bool kMayChildAllocate = !testing::kIsSanitized;
  static constexpr const char* kLockedAllocator =
      "AddressSanitizer's allocator stays locked in the child if another thread was in it";
  KeepingProfiler profiler_{ProfilerOptions{.sampling = {.cpu_frequency_hz = 1000}}};
};

// A session from registration to export, in a child.
void RunSessionInChild(KeepingProfiler& profiler) {
  KeptProfiles::Take();
  STROBE_CHILD_CHECK(profiler.Start().ok());
  const CpuBounds bounds = RunRegistered(profiler, "child", [] { BurnCpu(20'000'000); });
  STROBE_CHILD_CHECK(bounds.low_ns > 0);
  STROBE_CHILD_CHECK(profiler.Stop().ok());
  const auto kept = KeptProfiles::Take();
  STROBE_CHILD_CHECK(kept.size() == 1);
  STROBE_CHILD_CHECK(kept[0].profile.process_id == static_cast<std::uint64_t>(getpid()));
  const auto cpu_ns = SumByName(kept, "cpu");
  STROBE_CHILD_CHECK(cpu_ns.size() == 1);
  STROBE_CHILD_CHECK(cpu_ns.at("child") >= bounds.low_ns);
  STROBE_CHILD_CHECK(cpu_ns.at("child") <= bounds.high_ns);
}

TEST_F(Fork, ChildIsNotProfiled) {
  if (!kMayChildAllocate) GTEST_SKIP() << kLockedAllocator;
  std::optional<BasicScopedProfiler<testing::KeepingTraits>> session(profiler_);
  std::optional<Registration> registration(profiler_.RegisterThread("parent"));
  const int status = RunInChild([&] {
    const Stats before = profiler_.stats();
    STROBE_CHILD_CHECK(before.threads_registered == 0);
    BurnCpu(50'000'000);
    const Stats after = profiler_.stats();
    STROBE_CHILD_CHECK(after.samples == 0);
    STROBE_CHILD_CHECK(after.signals_stale == before.signals_stale);
    STROBE_CHILD_CHECK(absl::IsFailedPrecondition(profiler_.Stop()));
    // The parent's objects end here too, and mean nothing.
    registration.reset();
    session.reset();
    STROBE_CHILD_CHECK(KeptProfiles::Take().empty());
  });
  EXPECT_EQ(status, 0);
}

TEST_F(Fork, ChildMayBeginItsOwnSession) {
  if (!kMayChildAllocate) GTEST_SKIP() << kLockedAllocator;
  const BasicScopedProfiler session(profiler_);
  const auto registration = profiler_.RegisterThread("parent");
  std::atomic<bool> is_done{false};
  std::thread other([&] {
    RunRegistered(profiler_, "other", [&] {
      while (!is_done.load()) BurnCpu(100'000);
    });
  });
  EXPECT_EQ(RunInChild([&] { RunSessionInChild(profiler_); }), 0);
  // And its child's child as well.
  EXPECT_EQ(RunInChild([&] {
              const BasicScopedProfiler own(profiler_);
              const auto own_registration = profiler_.RegisterThread("child");
              STROBE_CHILD_CHECK(own_registration.status().ok());
              STROBE_CHILD_CHECK(RunInChild([&] { RunSessionInChild(profiler_); }) == 0);
            }),
            0);
  is_done = true;
  other.join();
}

// The child of a thread other than the first is its process's first, on the stack of the thread
// that forked.
TEST_F(Fork, ChildOfAThreadKnowsItsStack) {
  std::thread([] {
    EXPECT_EQ(
        RunInChild([] {
          const StackBounds stack = NativePlatform::CurrentThread().stack;
          STROBE_CHILD_CHECK(stack.Holds(reinterpret_cast<Address>(__builtin_frame_address(0))));
        }),
        0);
  }).join();
}

TEST_F(Fork, ParentGoesOn) {
  CpuBounds bounds;
  {
    const BasicScopedProfiler session(profiler_);
    bounds = RunRegistered(profiler_, "parent", [] {
      for (int i = 0; i < 20; ++i) {
        BurnCpu(2'000'000);
        EXPECT_EQ(RunInChild([] {}), 0);
      }
    });
  }
  const auto kept = KeptProfiles::Take();
  const auto cpu_ns = SumByName(kept, "cpu");
  ASSERT_EQ(cpu_ns.size(), 1U);
  EXPECT_GE(cpu_ns.at("parent"), bounds.low_ns);
  EXPECT_LE(cpu_ns.at("parent"), bounds.high_ns);
}

// Several threads fork at once, while others register, and while sessions of another profiler begin
// and end; every child can use both.
TEST_F(Fork, Storm) {
  if (!kMayChildAllocate) GTEST_SKIP() << kLockedAllocator;
  constexpr int kForks = 200;
  KeepingProfiler other({.sampling = {.cpu_frequency_hz = 500}});
  const BasicScopedProfiler session(profiler_);
  std::atomic<bool> is_done{false};
  std::thread restarts([&] {
    while (!is_done.load()) {
      EXPECT_TRUE(other.Start().ok());
      EXPECT_TRUE(other.Stop().ok());
    }
  });
  std::thread registers([&] {
    while (!is_done.load()) RunRegistered(profiler_, "comes and goes", [] { BurnCpu(10'000); });
  });
  std::vector<std::thread> forkers;
  for (int i = 0; i < 2; ++i) {
    forkers.emplace_back([&] {
      RunRegistered(profiler_, "forker", [&] {
        for (int j = 0; j < kForks; ++j) {
          const bool has_session = j % 10 == 0;
          EXPECT_EQ(RunInChild([&] {
                      if (has_session) {
                        RunSessionInChild(profiler_);
                        RunSessionInChild(other);
                      }
                    }),
                    0);
        }
      });
    });
  }
  for (std::thread& forker : forkers) forker.join();
  is_done = true;
  restarts.join();
  registers.join();
}

// Kernels before 4.19 begin a fork anew when a signal comes meanwhile. A quarter of a million page
// table entries take longer to copy than a period lasts; read and never written, they all are the
// one page of zeros and cost nothing else.
TEST_F(Fork, SlowForkEnds) {
  constexpr std::size_t kBytes = std::size_t{1} << 30;
  void* memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  ASSERT_EQ(madvise(memory, kBytes, MADV_NOHUGEPAGE), 0);
  auto* bytes = static_cast<volatile char*>(memory);
  bytes[0] = 1;
  char sum = 0;
  for (std::size_t i = 0; i < kBytes; i += 4096) sum = static_cast<char>(sum + bytes[i]);
  EXPECT_EQ(sum, 1);
  CpuBounds bounds;
  {
    const BasicScopedProfiler session(profiler_);
    bounds = RunRegistered(profiler_, "forker", [] {
      for (int i = 0; i < 3; ++i) EXPECT_EQ(RunInChild([] {}), 0);
    });
  }
  const auto cpu_ns = SumByName(KeptProfiles::Take(), "cpu");
  EXPECT_GE(cpu_ns.at("forker"), bounds.low_ns);
  EXPECT_LE(cpu_ns.at("forker"), bounds.high_ns);
  munmap(memory, kBytes);
}

TEST_F(Fork, LeavesTheSignalMaskAsItWas) {
  const BasicScopedProfiler session(profiler_);
  const auto registration = profiler_.RegisterThread("parent");
  sigset_t before;
  sigset_t after;
  sigemptyset(&before);
  sigemptyset(&after);
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  EXPECT_EQ(RunInChild([] {
              sigset_t mask;
              sigemptyset(&mask);
              pthread_sigmask(SIG_SETMASK, nullptr, &mask);
              STROBE_CHILD_CHECK(sigismember(&mask, SIGURG) == 0);
            }),
            0);
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  for (int signal = 1; signal < 65; ++signal)
    EXPECT_EQ(sigismember(&before, signal), sigismember(&after, signal)) << signal;
}

// A vfork's child borrows the parent's memory, and no handler of fork runs: the profiler must not
// be confused by what it does there.
TEST_F(Fork, Vfork) {
  CpuBounds bounds;
  {
    const BasicScopedProfiler session(profiler_);
    bounds = RunRegistered(profiler_, "parent", [] {
      for (int i = 0; i < 100; ++i) {
        BurnCpu(200'000);
        const pid_t child = vfork();
        if (child == 0) {
          execl("/bin/true", "true", nullptr);
          _exit(127);
        }
        int status = -1;
        ASSERT_EQ(waitpid(child, &status, 0), child);
        ASSERT_EQ(status, 0);
      }
    });
  }
  const auto cpu_ns = SumByName(KeptProfiles::Take(), "cpu");
  EXPECT_GE(cpu_ns.at("parent"), bounds.low_ns);
  EXPECT_LE(cpu_ns.at("parent"), bounds.high_ns);
}

// What the parent's ended profiler of another kind has left must not come back under a number that
// the child has given out again.
TEST_F(Fork, ChildsProfilersOfTwoKindsDoNotMeet) {
  if (!kMayChildAllocate) GTEST_SKIP() << kLockedAllocator;
  ASSERT_TRUE(profiler_.RegisterThread("takes an arena").status().ok());
  {
    BasicProfiler<testing::CpuOnlyTraits> ended;
    ASSERT_TRUE(ended.RegisterThread("takes another").status().ok());
  }
  EXPECT_EQ(
      RunInChild([&] {
        const ProfilerOptions options{.sampling = {.cpu_frequency_hz = 1000}};
        KeepingProfiler second(options);
        BasicProfiler<testing::CpuOnlyTraits> third(options);
        STROBE_CHILD_CHECK(profiler_.Start().ok() && second.Start().ok() && third.Start().ok());
        {
          const auto with_first = profiler_.RegisterThread("child");
          const auto with_second = second.RegisterThread("child");
          const auto with_third = third.RegisterThread("child");
          STROBE_CHILD_CHECK(WorkUntil(
              [&] {
                return profiler_.stats().samples > 0 && second.stats().samples > 0 &&
                       third.stats().samples > 0;
              },
              [] { BurnCpu(10'000'000); }));
        }
        STROBE_CHILD_CHECK(profiler_.Stop().ok() && second.Stop().ok() && third.Stop().ok());
      }),
      0);
}

// The loader's lock is the forking thread's, and the collector waits for it.
TEST_F(Fork, InsideACallbackOfTheLoader) {
  KeepingProfiler hasty({.collector = {.drain_period_ms = 1}});
  const BasicScopedProfiler session(hasty);
  const auto fork_inside = [](dl_phdr_info* /*info*/, std::size_t /*size*/, void* data) {
    BurnCpu(20'000'000);
    *static_cast<int*>(data) = RunInChild([] {});
    return 1;
  };
  for (int i = 0; i < 3; ++i) {
    int status = -1;
    alarm(120);
    dl_iterate_phdr(fork_inside, &status);
    alarm(0);
    ASSERT_EQ(status, 0);
  }
}

#if defined(__GLIBC__) && __GLIBC_PREREQ(2, 34)
// No handler of fork runs for such a child. It may use nothing that other threads may have held, so
// the parent has none.
TEST_F(Fork, ChildOfABareForkMayBeginItsOwnSession) {
  if (!kMayChildAllocate) GTEST_SKIP() << kLockedAllocator;
  const auto registration = profiler_.RegisterThread("parent");
  ASSERT_TRUE(registration.status().ok());
  const pid_t child = _Fork();
  if (child == 0) {
    alarm(120);
    RunSessionInChild(profiler_);
    // And its child's child.
    const int status = RunInChild([&] { RunSessionInChild(profiler_); });
    _exit(status == 0 ? 0 : 2);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(profiler_.stats().threads_registered, 1U);
}
#endif

// The child's profiler has the parent's options, and nothing to complain of that the parent has not
// said.
TEST_F(Fork, DoesNotRepeatWhatIsWrongInTheEnvironment) {
  setenv("STROBE_MAX_FRAMES", "many", 1);
  setenv("STROBE_WALL_FREQUENCY_HZ", "7", 1);
  ::testing::internal::CaptureStderr();
  {
    Profiler profiler;
    const pid_t child = fork();
    if (child == 0) _exit(*profiler.options().sampling.wall_frequency_hz == 7 ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  const std::string said = ::testing::internal::GetCapturedStderr();
  unsetenv("STROBE_MAX_FRAMES");
  unsetenv("STROBE_WALL_FREQUENCY_HZ");
  EXPECT_EQ(std::count(said.begin(), said.end(), '\n'), 1) << said;
  EXPECT_EQ(said.find("strobe: STROBE_MAX_FRAMES"), 0u) << said;
}

}  // namespace
}  // namespace strobe
