// A thread that waits is left in peace.
#include <errno.h>
#include <execinfo.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <fstream>
#include <functional>
#include <iterator>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "kept_profiles.h"
#include "support/until_seen.h"

namespace strobe {
namespace {

using testing::BurnCpu;
using testing::KeepingProfiler;
using testing::KeptProfile;
using testing::KeptProfiles;
using testing::RunRegistered;
using testing::SumByName;
using testing::UndisturbedWalks;
using testing::WaitUntil;
using testing::WorkUntil;

std::int64_t MonotonicNs() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

// A line of /proc/self/task/<tid>/status, without its name.
std::string StatusOf(pid_t tid, const std::string& name) {
  std::ifstream status("/proc/self/task/" + std::to_string(tid) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (line.rfind(name + ":", 0) == 0) return line.substr(name.size() + 1);
  }
  return {};
}
std::int64_t SwitchesOf(pid_t tid) { return std::stoll(StatusOf(tid, "voluntary_ctxt_switches")); }

// Waits until the thread waits in that system call. Its count of switches has the switch to that
// wait then: the system tells of the call only when the thread has left its CPU.
void AwaitCall(const std::atomic<pid_t>& tid, int number) {
  WaitUntil([&] {
    std::ifstream call("/proc/self/task/" + std::to_string(tid.load()) + "/syscall");
    int waits_in = -1;
    return (call >> waits_in) && waits_in == number;
  });
}

// The voluntary switches of a thread that waits: each interruption costs one. A signal that was
// sent while the thread ran may arrive when it waits already, so a test awaits that none come any
// more.
class Switches {
 public:
  explicit Switches(pid_t tid) : tid_(tid) {}
  // Whether there were any since the last call.
  bool HaveCome() {
    const std::int64_t now = SwitchesOf(tid_);
    return std::exchange(seen_, now) != now;
  }

 private:
  const pid_t tid_;
  std::int64_t seen_ = SwitchesOf(tid_);
};

std::vector<KeptProfile> EndPeriod(KeepingProfiler& profiler) {
  EXPECT_EQ(profiler.Flush(), absl::OkStatus());
  return KeptProfiles::Take();
}

// The stacks, leaf first, that polls have given wall time to.
std::vector<std::vector<Frame>> PolledStacksOf(const std::vector<KeptProfile>& kept) {
  std::vector<std::vector<Frame>> stacks;
  for (const KeptProfile& one : kept) {
    const Profile& profile = one.profile;
    const int column = testing::ColumnOf(profile, "wall");
    for (std::size_t i = 0; column >= 0 && i < profile.samples.size(); ++i) {
      std::vector<Frame> frames = testing::FramesOf(profile, profile.samples[i]);
      const bool is_account = frames.size() == 1 && frames[0].is_pseudo();
      if (!is_account && profile.Values(i)[static_cast<std::size_t>(column)] != 0)
        stacks.push_back(std::move(frames));
    }
  }
  return stacks;
}

TEST(WaitingThreads, EpollSeesNoInterruptionUnderTheCpuProvider) {
  constexpr std::uint64_t kSamples = 50;
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 1000}});
  ASSERT_TRUE(profiler.Start().ok());
  const int poll = epoll_create1(0);
  const int event = eventfd(0, 0);
  epoll_event wanted{.events = EPOLLIN, .data = {}};
  ASSERT_EQ(epoll_ctl(poll, EPOLL_CTL_ADD, event, &wanted), 0);
  std::atomic<pid_t> tid{0};
  std::atomic<bool> is_seen_waiting{false};
  int result = -2;
  std::thread waiting([&] {
    RunRegistered(profiler, "waits", [&] {
      BurnCpu(10'000'000);  // so that its timer has expired before, and its next expiry is near
      tid = static_cast<pid_t>(syscall(SYS_gettid));
      epoll_event got{};
      // Before Linux 5.12, a timer that expires just when the thread begins to wait ends the wait.
      do {
        result = epoll_pwait(poll, &got, 1, -1, nullptr);
      } while (result < 0 && errno == EINTR && !is_seen_waiting.load());
    });
  });
  AwaitCall(tid, SYS_epoll_pwait);
  is_seen_waiting = true;
  // Another thread is sampled so often, and this one is not touched meanwhile.
  Switches switches(tid);
  RunRegistered(profiler, "works", [&] {
    std::uint64_t since = profiler.stats().samples;
    WorkUntil(
        [&] {
          const std::uint64_t now = profiler.stats().samples;
          if (switches.HaveCome()) since = now;
          return now >= since + kSamples;
        },
        [] { BurnCpu(1'000'000); });
  });
  const std::uint64_t one = 1;
  ASSERT_EQ(write(event, &one, sizeof(one)), static_cast<ssize_t>(sizeof(one)));
  waiting.join();
  EXPECT_EQ(result, 1) << "epoll_pwait was interrupted";
  ASSERT_TRUE(profiler.Stop().ok());
  KeptProfiles::Take();
  close(event);
  close(poll);
}

TEST(WaitingThreads, WallTimeOfAWaitCostsNoInterruption) {
  constexpr int kPeriods = 20;  // with polls of the wait
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 0, .wall_frequency_hz = 200}});
  ASSERT_TRUE(profiler.Start().ok());
  KeptProfiles::Take();
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::atomic<pid_t> tid{0};
  ssize_t got = -1;
  std::int64_t before_ns = 0;
  std::int64_t begin_ns = 0;
  std::int64_t end_ns = 0;
  std::int64_t after_ns = 0;
  std::thread waiting([&] {
    before_ns = MonotonicNs();
    RunRegistered(profiler, "waits", [&] {
      begin_ns = MonotonicNs();
      tid = static_cast<pid_t>(syscall(SYS_gettid));
      char byte = 0;
      got = read(ends[0], &byte, 1);
      end_ns = MonotonicNs();
    });
    after_ns = MonotonicNs();
  });
  AwaitCall(tid, SYS_read);
  // The walk may lack the frame pointer, and costs an interruption then. Later polls cost none.
  Switches switches(tid);
  std::vector<KeptProfile> kept;
  int periods = 0;
  WaitUntil([&] {
    std::vector<KeptProfile> period = EndPeriod(profiler);
    periods = switches.HaveCome() ? 0 : periods + (PolledStacksOf(period).empty() ? 0 : 1);
    std::move(period.begin(), period.end(), std::back_inserter(kept));
    return periods == kPeriods;
  });
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  waiting.join();
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_EQ(got, 1);
  EXPECT_EQ(profiler.stats().waits_hidden, 0U);
  std::vector<KeptProfile> last = KeptProfiles::Take();
  std::move(last.begin(), last.end(), std::back_inserter(kept));
  auto wall_ns = SumByName(kept, "wall");
  EXPECT_GE(wall_ns["waits"], end_ns - begin_ns);
  EXPECT_LE(wall_ns["waits"], after_ns - before_ns);
  close(ends[0]);
  close(ends[1]);
}

// What the calling thread waits in, below a frame of fixed or of variable size.
enum class Frames { kFixed, kVariable };
struct OwnStack {
  std::array<void*, 64> addresses{};
  int count = 0;
  std::atomic<bool> is_waiting{false};  // and so to the end
};
__attribute__((noinline)) void WaitHere(const std::function<void()>& wait, OwnStack& own) {
  own.count = backtrace(own.addresses.data(), static_cast<int>(own.addresses.size()));
  // Longer than internal::kReturnCostNs: an earlier place where the thread waited is not this one.
  BurnCpu(1'000'000);
  own.is_waiting = true;
  wait();
  asm volatile("" : : : "memory");  // no tail call
}
__attribute__((noinline)) void Descend(int depth, Frames frames, const std::function<void()>& wait,
                                       OwnStack& own) {
  const std::size_t bytes =
      frames == Frames::kVariable ? 64U * static_cast<unsigned>(depth + 1) : 16;
  auto* const room = static_cast<volatile char*>(
      frames == Frames::kVariable ? __builtin_alloca(bytes) : static_cast<void*>(&own));
  if (depth == 0) {
    WaitHere(wait, own);
  } else {
    Descend(depth - 1, frames, wait, own);
  }
  asm volatile("" : : "r"(room) : "memory");
}

// The callers of WaitHere in each of the stacks are those that the thread itself sees.
void ExpectStacksOf(const std::vector<std::vector<Frame>>& stacks, const OwnStack& own) {
  // The first is WaitHere's own, where it stands at another call.
  std::vector<std::uint64_t> expected;
  for (int i = 1; i < own.count; ++i)
    expected.push_back(reinterpret_cast<std::uint64_t>(own.addresses[static_cast<std::size_t>(i)]) -
                       1);
  ASSERT_GT(expected.size(), 12U);
  for (const std::vector<Frame>& stack : stacks) {
    std::vector<std::uint64_t> callers;
    for (const Frame& frame : stack) callers.push_back(frame.address);
    const auto found =
        std::search(callers.begin(), callers.end(), expected.begin(), expected.end());
    EXPECT_NE(found, callers.end()) << ::testing::PrintToString(callers) << "\n"
                                    << ::testing::PrintToString(expected);
  }
}

class StacksOfWaits : public ::testing::TestWithParam<std::pair<const char*, Frames>> {};
INSTANTIATE_TEST_SUITE_P(
    Waits, StacksOfWaits,
    ::testing::Values(std::pair("poll", Frames::kFixed), std::pair("poll", Frames::kVariable),
                      std::pair("read", Frames::kFixed), std::pair("read", Frames::kVariable),
                      std::pair("sleep", Frames::kFixed), std::pair("sleep", Frames::kVariable),
                      std::pair("condition", Frames::kFixed),
                      std::pair("condition", Frames::kVariable)));

constexpr std::uint64_t kWalks = 10;  // in a row, without an interruption

// Each wait is short, so that it is walked anew: after the interruption that tells the frame
// pointer of a place, the profiler needs no walk of the same wait.
TEST_P(StacksOfWaits, AreTheThreadsOwn) {
  const Frames frames = GetParam().second;
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 0, .wall_frequency_hz = 500}});
  ASSERT_TRUE(profiler.Start().ok());
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  std::atomic<bool> is_ending{false};
  std::mutex mutex;
  std::condition_variable condition;
  const std::function<void()> waits[] = {
      [&] { poll(nullptr, 0, 20); },
      [&] {
        char byte = 0;
        EXPECT_EQ(read(ends[0], &byte, 1), 1);
      },
      [&] { std::this_thread::sleep_for(std::chrono::milliseconds(20)); },
      [&] {
        std::unique_lock lock(mutex);
        condition.wait_for(lock, std::chrono::milliseconds(20), [&] { return is_ending.load(); });
      },
  };
  const std::string_view kind = GetParam().first;
  const std::function<void()>& wait = waits[kind == "poll"    ? 0
                                            : kind == "read"  ? 1
                                            : kind == "sleep" ? 2
                                                              : 3];
  const auto wait_again = [&] {
    while (!is_ending.load()) wait();
  };
  OwnStack own;
  std::thread waiting(
      [&] { RunRegistered(profiler, "waits", [&] { Descend(10, frames, wait_again, own); }); });
  WaitUntil([&] { return own.is_waiting.load(); });
  EndPeriod(profiler);
  UndisturbedWalks walks(profiler);
  std::size_t polled = 0;
  WaitUntil([&] {
    const auto stacks = PolledStacksOf(EndPeriod(profiler));
    if (!testing::kIsSanitized) ExpectStacksOf(stacks, own);
    polled += stacks.size();
    EXPECT_EQ(write(ends[1], "x", 1), 1);  // ends a read
    return (polled >= kWalks && walks.Count() >= kWalks) || ::testing::Test::HasFailure();
  });
  is_ending = true;
  EXPECT_EQ(write(ends[1], "x", 1), 1);
  waiting.join();
  ASSERT_TRUE(profiler.Stop().ok());
  EXPECT_EQ(profiler.stats().waits_hidden, 0U);
  KeptProfiles::Take();
  close(ends[0]);
  close(ends[1]);
}

std::atomic<bool> coroutine_waits{false};
std::atomic<bool> coroutine_may_end{false};
void WaitInCoroutine() {
  BurnCpu(1'000'000);  // as in WaitHere
  coroutine_waits = true;
  while (!coroutine_may_end.load()) std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

// Its stack is found from outside, too.
TEST(WaitingThreads, TheStackOfACoroutineThatWaitsIsWalked) {
  coroutine_waits = false;
  coroutine_may_end = false;
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 0, .wall_frequency_hz = 500}});
  ASSERT_TRUE(profiler.Start().ok());
  std::thread thread([&] {
    RunRegistered(profiler, "coroutine", [] {
      constexpr std::size_t kBytes = 256 * 1024;
      void* const stack =
          mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      ASSERT_NE(stack, MAP_FAILED);
      static ucontext_t caller;
      ucontext_t context;
      ASSERT_EQ(getcontext(&context), 0);
      context.uc_stack = {.ss_sp = stack, .ss_flags = 0, .ss_size = kBytes};
      context.uc_link = &caller;
      makecontext(&context, WaitInCoroutine, 0);
      ASSERT_EQ(swapcontext(&caller, &context), 0);
      munmap(stack, kBytes);
    });
  });
  WaitUntil([] { return coroutine_waits.load(); });
  EndPeriod(profiler);
  UndisturbedWalks walks(profiler);
  std::size_t polled = 0;
  WaitUntil([&] {
    for (const std::vector<Frame>& stack : PolledStacksOf(EndPeriod(profiler))) {
      const Frame& root = stack.back();
      EXPECT_TRUE(root.is_pseudo() &&
                  root.address == static_cast<Address>(PseudoFrame::kCoroutine));
      ++polled;
    }
    return (polled >= kWalks && walks.Count() >= kWalks) || ::testing::Test::HasFailure();
  });
  coroutine_may_end = true;
  thread.join();
  ASSERT_TRUE(profiler.Stop().ok());
  KeptProfiles::Take();
}

}  // namespace
}  // namespace strobe
