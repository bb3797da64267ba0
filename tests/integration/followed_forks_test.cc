// With threads.follow_forks a fork's child goes on by itself, as servers need it that fork their
// workers: its thread is registered, it has a session, and it hears of no failure that is none.
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
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
using testing::ThreadCpuNs;
using testing::WaitUntil;

using KeepingSession = BasicScopedProfiler<testing::KeepingTraits>;

ProfilerOptions Following() {
  return {.sampling = {.cpu_frequency_hz = 1000}, .threads = {.follow_forks = true}};
}

// Each process writes to the same standard error, which stays empty.
class FollowedForks : public ::testing::Test {
 protected:
  void SetUp() override {
    if (testing::kIsSanitized) GTEST_SKIP() << "a sanitizer's allocator may be locked in the child";
    testing::HoldKeptProfilesOverForks();
    KeptProfiles::Take();
    ::testing::internal::CaptureStderr();
    is_captured_ = true;
  }
  void TearDown() override {
    if (!is_captured_) return;
    EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  }

 private:
  bool is_captured_ = false;
};

// In the child.
void AwaitSession(KeepingProfiler& profiler) {
  STROBE_CHILD_CHECK(WaitUntil([&] { return profiler.Flush().ok(); }));
}

// In the child, whose thread is called `name`: its session has what the thread's clock says.
void ExpectToGoOn(KeepingProfiler& profiler, const std::string& name,
                  std::int64_t cpu_ns = 20'000'000) {
  KeptProfiles::Take();
  STROBE_CHILD_CHECK(profiler.stats().threads_registered == 1);
  AwaitSession(profiler);
  const std::int64_t begin_ns = ThreadCpuNs();
  BurnCpu(cpu_ns);
  const std::int64_t low_ns = ThreadCpuNs() - begin_ns;
  STROBE_CHILD_CHECK(profiler.Stop().ok());
  const std::int64_t high_ns = ThreadCpuNs();
  const auto kept = KeptProfiles::Take();
  STROBE_CHILD_CHECK(!kept.empty());
  for (const auto& one : kept)
    STROBE_CHILD_CHECK(one.profile.process_id == static_cast<std::uint64_t>(getpid()));
  const auto sums_ns = SumByName(kept, "cpu");
  STROBE_CHILD_CHECK(sums_ns.size() == 1 && sums_ns.contains(name));
  STROBE_CHILD_CHECK(sums_ns.at(name) >= low_ns && sums_ns.at(name) <= high_ns);
}

TEST_F(FollowedForks, AServerAndItsWorkersEachHaveTheirOwnTime) {
  constexpr int kWorkers = 4;
  KeepingProfiler profiler(Following());
  CpuBounds bounds;
  {
    const KeepingSession session(profiler);
    bounds = RunRegistered(profiler, "server", [&] {
      std::vector<pid_t> workers;
      for (int i = 0; i < kWorkers; ++i) {
        BurnCpu(5'000'000);
        workers.push_back(fork());
        if (workers.back() != 0) continue;
        alarm(120);
        ExpectToGoOn(profiler, "server", (i + 1) * 10'000'000);
        _exit(0);
      }
      BurnCpu(5'000'000);
      for (const pid_t worker : workers) {
        int status = -1;
        EXPECT_EQ(waitpid(worker, &status, 0), worker);
        EXPECT_EQ(status, 0);
      }
    });
  }
  const auto sums_ns = SumByName(KeptProfiles::Take(), "cpu");
  ASSERT_EQ(sums_ns.size(), 1U);
  EXPECT_GE(sums_ns.at("server"), bounds.low_ns);
  EXPECT_LE(sums_ns.at("server"), bounds.high_ns);
}

// A daemon forks twice; the first child ends before it has a session.
TEST_F(FollowedForks, AChildOfAChildGoesOn) {
  KeepingProfiler profiler(Following());
  const KeepingSession session(profiler);
  const auto registration = profiler.RegisterThread("daemon");
  EXPECT_EQ(RunInChild([&] {
              STROBE_CHILD_CHECK(RunInChild([&] { ExpectToGoOn(profiler, "daemon"); }) == 0);
              ExpectToGoOn(profiler, "daemon");
            }),
            0);
}

// A daemon forks twice, from a thread that needs no registration, and at once.
TEST_F(FollowedForks, AChildOfAChildGoesOnWithoutARegistration) {
  KeepingProfiler profiler(Following());
  const KeepingSession session(profiler);
  EXPECT_EQ(RunInChild([&] {
              STROBE_CHILD_CHECK(RunInChild([&] {
                                   AwaitSession(profiler);
                                   const auto own = profiler.RegisterThread("daemon");
                                   ExpectToGoOn(profiler, "daemon");
                                 }) == 0);
            }),
            0);
}

// What the program says itself comes first, in either order.
TEST_F(FollowedForks, AChildMayStartAndRegisterByItself) {
  std::optional<KeepingProfiler> profiler(Following());
  std::optional<KeepingSession> session(*profiler);
  std::optional<Registration> registration(profiler->RegisterThread("server"));
  EXPECT_EQ(RunInChild([&] {
              const auto own_registration = profiler->RegisterThread("worker");
              STROBE_CHILD_CHECK(own_registration.status().ok());
              const KeepingSession own(*profiler);
              STROBE_CHILD_CHECK(own.status().ok());
              registration.reset();
              ExpectToGoOn(*profiler, "worker");
            }),
            0);
  EXPECT_EQ(RunInChild([&] {
              AwaitSession(*profiler);
              const KeepingSession own(*profiler);
              STROBE_CHILD_CHECK(own.status().ok());
              STROBE_CHILD_CHECK(absl::IsFailedPrecondition(profiler->Start()));
              ExpectToGoOn(*profiler, "server");
            }),
            0);
  EXPECT_EQ(RunInChild([&] {
              KeepingProfiler own(Following());
              const KeepingSession own_session(own);
              const auto own_registration = own.RegisterThread("of its own");
              ExpectToGoOn(own, "of its own");
            }),
            0);
}

TEST_F(FollowedForks, AChildMayEndAtAnyTime) {
  for (const bool is_early : {true, false}) {
    std::optional<KeepingProfiler> profiler(Following());
    std::optional<KeepingSession> session(*profiler);
    std::optional<Registration> registration(profiler->RegisterThread("server"));
    const auto await = [&] {
      if (!is_early) AwaitSession(*profiler);
    };
    EXPECT_EQ(RunInChild(await), 0);
    EXPECT_EQ(RunInChild([&] {
                await();
                registration.reset();
                STROBE_CHILD_CHECK(profiler->stats().threads_registered == 0);
                session.reset();
                profiler.reset();
              }),
              0);
    // As exit does to static objects: the registration of main is still there.
    EXPECT_EQ(RunInChild([&] {
                await();
                profiler.reset();
                registration.reset();
              }),
              0);
  }
}

TEST_F(FollowedForks, AStoppedProfilerBeginsNoSession) {
  KeepingProfiler profiler(Following());
  // It comes behind the other one: when its session runs, the other's would.
  KeepingProfiler witness(Following());
  ASSERT_TRUE(profiler.Start().ok() && witness.Start().ok());
  const auto registration = profiler.RegisterThread("server");
  const auto expect_none = [&] {
    AwaitSession(witness);
    STROBE_CHILD_CHECK(profiler.stats().threads_registered == 1);
    STROBE_CHILD_CHECK(absl::IsFailedPrecondition(profiler.Flush()));
  };
  EXPECT_EQ(RunInChild([&] {
              static_cast<void>(profiler.Stop());
              expect_none();
            }),
            0)
      << "stopped in the child";
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_EQ(RunInChild(expect_none), 0) << "stopped in the parent";
}

TEST_F(FollowedForks, AThreadThatIsNotRegisteredStaysSo) {
  KeepingProfiler profiler(Following());
  const KeepingSession session(profiler);
  const auto registration = profiler.RegisterThread("not the one that forks");
  std::thread([&] {
    EXPECT_EQ(RunInChild([&] {
                AwaitSession(profiler);
                STROBE_CHILD_CHECK(profiler.stats().threads_registered == 0);
                const auto own = profiler.RegisterThread("worker");
                ExpectToGoOn(profiler, "worker");
              }),
              0);
  }).join();
}

// Each goes on as itself, or not at all.
TEST_F(FollowedForks, EachProfilerHasItsOwnNameAndOption) {
  KeepingProfiler first(Following());
  KeepingProfiler second(Following());
  KeepingProfiler other({.sampling = {.cpu_frequency_hz = 1000}});
  ASSERT_TRUE(first.Start().ok() && second.Start().ok() && other.Start().ok());
  const auto with_second = second.RegisterThread("second");
  const auto with_first = first.RegisterThread("first");
  const auto with_other = other.RegisterThread("other");
  EXPECT_EQ(RunInChild([&] {
              AwaitSession(first);
              AwaitSession(second);
              STROBE_CHILD_CHECK(second.Stop().ok());
              ExpectToGoOn(first, "first");
              STROBE_CHILD_CHECK(second.Start().ok());
              ExpectToGoOn(second, "second");
              STROBE_CHILD_CHECK(other.stats().threads_registered == 0);
              STROBE_CHILD_CHECK(absl::IsFailedPrecondition(other.Flush()));
            }),
            0);
}

// Threads fork at once, while profilers that follow come and go.
TEST_F(FollowedForks, Storm) {
  constexpr int kForks = 20;
  KeepingProfiler profiler(Following());
  const KeepingSession session(profiler);
  std::atomic<bool> is_done{false};
  std::thread comes_and_goes([&] {
    while (!is_done.load()) {
      KeepingProfiler other(Following());
      const KeepingSession other_session(other);
    }
  });
  std::vector<std::thread> forkers;
  for (const char* const name : {"one", "two"}) {
    forkers.emplace_back([&, name] {
      RunRegistered(profiler, name, [&] {
        for (int i = 0; i < kForks; ++i) {
          EXPECT_EQ(RunInChild([&] {
                      if (i % 5 == 0) ExpectToGoOn(profiler, name);
                    }),
                    0);
        }
      });
    });
  }
  for (std::thread& forker : forkers) forker.join();
  is_done = true;
  comes_and_goes.join();
}

}  // namespace
}  // namespace strobe
