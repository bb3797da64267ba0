// LinuxPlatform's signals, timers and threads. Its images and forks are in linux/.
#include "strobe/platform/linux/linux_platform.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cinttypes>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <functional>
#include <future>
#include <mutex>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/base/sanitizers.h"
#include "strobe/core/settings/messages.h"
#include "strobe/platform/capture_target.h"
#include "strobe/platform/linux/own_files.h"
#include "support/in_child.h"
#include "support/until_seen.h"

namespace strobe {
namespace {

using internal::CaptureTarget;
using internal::ChannelToken;
using ::testing::HasSubstr;

constexpr bool kIsSanitized = internal::kHasAddressSanitizer || internal::kHasThreadSanitizer;

constexpr std::uint8_t kArena = internal::kMaxArenas - 1;
std::uint64_t Payload(std::uint32_t index) {
  return ChannelToken{.arena = kArena, .index = index}.Pack();
}

// What arrived for one token.
struct Arrivals {
  std::atomic<std::int64_t> weight{0};
  std::atomic<int> calls{0};
  std::atomic<Address> pc{0};
};
std::array<Arrivals, 4> arrivals;

bool CountArrival(void* /*context*/, const CaptureTarget& target) {
  if (target.token.index >= arrivals.size()) return false;
  Arrivals& arrival = arrivals[target.token.index];
  arrival.weight += target.timer_expiries;
  arrival.pc = target.registers == nullptr ? 0 : target.registers->pc;
  ++arrival.calls;
  return true;
}

// A sanitizer may hold a signal back until the thread calls something; nothing else here takes this
// long.
bool Eventually(const std::function<bool()>& predicate) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(60);
  while (!predicate()) {
    if (std::chrono::steady_clock::now() > deadline) return false;
    usleep(100);
  }
  return true;
}

std::int64_t OwnCpuNs() { return LinuxPlatform::ThreadCpuTimeNs(LinuxPlatform::CurrentThreadId()); }

class LinuxPlatformTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (Arrivals& arrival : arrivals) {
      arrival.weight = 0;
      arrival.calls = 0;
    }
    internal::CaptureEntryOf(kArena).function = &CountArrival;
    ASSERT_TRUE(LinuxPlatform::InstallHandler(signal_).ok());
  }
  void TearDown() override { internal::CaptureEntryOf(kArena).function = nullptr; }

  const int signal_ = LinuxPlatform::DefaultSignal();
};

// The limit of a user's processes counts threads, but not those of root.
TEST_F(LinuxPlatformTest, AThreadThatIsRefusedSaysWhy) {
  constexpr uid_t kNobody = 65534;
  EXPECT_TRUE(testing::HoldsInChild([] {
    const rlimit none{};
    if (geteuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) return true;
    if (setrlimit(RLIMIT_NPROC, &none) != 0) return true;
    LinuxPlatform::OwnThread refused = LinuxPlatform::RunOnOwnThread("refused", [] {});
    const LinuxPlatform::OwnThread moved = std::move(refused);
    return !moved.IsRunning() && moved.error() == EAGAIN;
  }));
}

TEST_F(LinuxPlatformTest, ATimerCountsItsOwnThreadsCpuTimeWithOverruns) {
  constexpr std::int64_t kPeriodNs =
      300'000;  // shorter than the tick of most kernels: several expiries a signal
  constexpr std::int64_t kFirstNs = 100'000;
  constexpr std::int64_t kWanted = 200;
  LinuxPlatform::Timer timer;
  const std::int64_t begin_ns = OwnCpuNs();
  ASSERT_TRUE(LinuxPlatform::StartTimer(timer, LinuxPlatform::CurrentThreadId(), Payload(0),
                                        kFirstNs, kPeriodNs, signal_));
  testing::WorkUntil([] { return arrivals[0].weight >= kWanted; }, [] {});
  LinuxPlatform::StopTimer(timer);
  const std::int64_t used_ns = OwnCpuNs() - begin_ns;
  const std::int64_t weight = arrivals[0].weight;
  EXPECT_LE(weight, (used_ns - kFirstNs) / kPeriodNs + 1) << "more expiries than periods";
  EXPECT_LE(arrivals[0].calls, weight);
  // Stopped is stopped.
  while (OwnCpuNs() - begin_ns < used_ns + 20'000'000) {
  }
  EXPECT_EQ(arrivals[0].weight, weight);
}

// By the third field of the thread's stat file; the second, a name, may have parentheses.
bool IsAsleep(std::uint64_t thread_id) {
  std::ifstream stat("/proc/self/task/" + std::to_string(thread_id) + "/stat");
  std::string text;
  std::getline(stat, text);
  return text.find(") S ") != std::string::npos;
}

TEST_F(LinuxPlatformTest, AThreadThatDoesNotRunGetsNoExpiry) {
  std::mutex mutex;
  std::condition_variable changed;
  bool may_end = false;
  std::atomic<std::uint64_t> id{0};
  std::thread sleeper([&] {
    std::unique_lock lock(mutex);
    id = LinuxPlatform::CurrentThread().id;
    changed.notify_all();
    changed.wait(lock, [&] { return may_end; });
  });
  {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return id != 0; });
  }
  // Not before it waits: what the system takes from a thread that runs may count as its CPU time.
  ASSERT_TRUE(testing::WaitUntil([&] { return IsAsleep(id); }));
  constexpr std::int64_t kPeriodNs = 100'000'000;
  LinuxPlatform::Timer theirs;
  LinuxPlatform::Timer ours;
  ASSERT_TRUE(LinuxPlatform::StartTimer(theirs, id, Payload(1), kPeriodNs, kPeriodNs, signal_));
  ASSERT_TRUE(LinuxPlatform::StartTimer(ours, LinuxPlatform::CurrentThreadId(), Payload(2),
                                        kPeriodNs, kPeriodNs, signal_));
  testing::WorkUntil([] { return arrivals[2].weight >= 2; }, [] {});
  EXPECT_EQ(arrivals[1].calls, 0);
  LinuxPlatform::StopTimer(theirs);
  LinuxPlatform::StopTimer(ours);
  {
    const std::lock_guard lock(mutex);
    may_end = true;
    changed.notify_all();
  }
  sleeper.join();
}

// What a random timer's expiries, in the handler, say of the gaps before them.
struct Gaps {
  internal::RandomTimer* timer = nullptr;
  std::int64_t before_ns = 0;      // by the steady clock, which the kernel's timer keeps to
  std::int64_t before_cpu_ns = 0;  // by the thread's CPU clock
  std::atomic<int> count{0};
  std::atomic<int> early{0};
  std::atomic<int> in_time{0};  // long ones, but for a quarter
};
Gaps gaps;
constexpr std::int64_t kMeanGapNs = 500'000;

std::int64_t SteadyNs() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

bool CheckGap(void* /*context*/, const CaptureTarget& target) {
  // The gap that is over is drawn again.
  gaps.timer->draws.fetch_sub(1, std::memory_order_relaxed);
  const std::int64_t gap_ns = gaps.timer->NextGapNs();
  const std::int64_t now_ns = SteadyNs();
  const std::int64_t cpu_ns = OwnCpuNs();
  if (now_ns - gaps.before_ns < gap_ns) ++gaps.early;
  if (gap_ns > 2 * kMeanGapNs && cpu_ns - gaps.before_cpu_ns < gap_ns + gap_ns / 4) ++gaps.in_time;
  gaps.before_ns = now_ns;
  gaps.before_cpu_ns = cpu_ns;
  ++gaps.count;
  return CountArrival(nullptr, target);
}

// That the gaps have the mean is what random_timer_test.cc says. Each must pass before its expiry;
// how late an expiry may come is up to the machine, but not all are late. run(act) carries out what
// starts and stops the timer.
void ExpectAnExpiryAfterEachGap(int signal,
                                const std::function<void(const std::function<void()>& act)>& run) {
  constexpr std::uint32_t kSeed = 7;
  constexpr int kWanted = 500;
  internal::CaptureEntryOf(kArena).function = &CheckGap;
  const ChannelToken token{.arena = kArena, .index = 1};
  internal::RegistrationLink link;
  link.next = internal::RegistrationLinks();
  link.token = &token;
  internal::RegistrationLinks() = &link;
  gaps.timer = &link.random_timer;
  gaps.count = gaps.early = gaps.in_time = 0;
  gaps.before_ns = SteadyNs();
  gaps.before_cpu_ns = OwnCpuNs();
  bool is_started = false;
  run([&, thread = LinuxPlatform::CurrentThreadId()] {
    is_started =
        LinuxPlatform::StartRandomTimer(link.random_timer, thread, 0, kMeanGapNs, kSeed, signal);
  });
  if (is_started) {
    testing::WorkUntil([] { return gaps.count >= kWanted && gaps.in_time > 0; }, [] {});
  }
  run([&] { LinuxPlatform::StopRandomTimer(link.random_timer); });
  const std::int64_t weight = arrivals[1].weight;
  const std::int64_t stop_ns = OwnCpuNs();
  while (is_started && OwnCpuNs() - stop_ns < 20'000'000) {
  }
  internal::RegistrationLinks() = link.next;
  if (!is_started) GTEST_SKIP() << "the system allows no perf events here";
  EXPECT_EQ(arrivals[1].weight, weight) << "stopped is stopped";
  EXPECT_EQ(arrivals[1].calls, weight);
  EXPECT_EQ(gaps.count, weight);
  EXPECT_EQ(gaps.early, 0);
  EXPECT_EQ(link.random_timer.draws, kSeed + 1 + static_cast<std::uint32_t>(weight))
      << "one gap for each expiry, and one that is under way";
}

TEST_F(LinuxPlatformTest, ARandomTimerExpiresAfterEachGapThatItDraws) {
  ExpectAnExpiryAfterEachGap(signal_, [](const std::function<void()>& act) { act(); });
}

// Its event is the program's all the same.
TEST_F(LinuxPlatformTest, AThreadWithFilesOfItsOwnStartsAndStopsRandomTimers) {
  ExpectAnExpiryAfterEachGap(signal_, &LinuxPlatform::WithOwnFiles);
}

// Its handler could not reach the event, which would expire once and never again.
TEST_F(LinuxPlatformTest, ARandomTimerIsRefusedForAThreadWithFilesOfItsOwn) {
  std::promise<std::uint64_t> id;
  std::promise<void> end;
  std::thread other([&] {
    id.set_value(internal::TakeOwnFiles() ? LinuxPlatform::CurrentThreadId() : 0);
    end.get_future().wait();
  });
  const std::uint64_t thread_id = id.get_future().get();
  internal::RandomTimer timer;
  if (thread_id != 0) {
    EXPECT_FALSE(LinuxPlatform::StartRandomTimer(timer, thread_id, 0, 1'000'000, 7, SIGURG));
  }
  EXPECT_EQ(timer.event, -1);
  end.set_value();
  other.join();
}

TEST_F(LinuxPlatformTest, AThreadThatLeavesTheProgramsFilesLeavesNoEventOpen) {
  const auto count_events = [] {
    constexpr int kNumbers = 2048;
    int count = 0;
    for (int number = 0; number < kNumbers; ++number) {
      std::uint64_t id = 0;
      count += ioctl(number, PERF_EVENT_IOC_ID, &id) == 0 ? 1 : 0;
    }
    return count;
  };
  const int before = count_events();
  internal::RandomTimer timer;
  bool is_started = false;
  const auto start = [](internal::RandomTimer& own) {
    return LinuxPlatform::StartRandomTimer(own, LinuxPlatform::CurrentThreadId(), 0,
                                           1'000'000'000'000, 7, SIGURG);
  };
  std::thread([&] {
    is_started = start(timer);
    if (unshare(CLONE_FILES) == 0) LinuxPlatform::StopRandomTimer(timer);
  }).join();
  if (!is_started) GTEST_SKIP() << "the system allows no perf events here";
  internal::RandomTimer next;
  EXPECT_TRUE(start(next));
  LinuxPlatform::StopRandomTimer(next);
  EXPECT_EQ(count_events(), before) << "the next that stops closes it";
}

TEST_F(LinuxPlatformTest, ARandomTimerIsRefusedForASignalThatCouldDoHarm) {
  internal::RandomTimer timer;
  EXPECT_FALSE(LinuxPlatform::StartRandomTimer(timer, LinuxPlatform::CurrentThreadId(), 0,
                                               1'000'000, 7, SIGUSR1));
  EXPECT_FALSE(LinuxPlatform::StartRandomTimer(timer, 0x3FFFFFF, 0, 1'000'000, 7, SIGURG));
  EXPECT_EQ(timer.event, -1);
  LinuxPlatform::StopRandomTimer(timer);  // nothing to stop
}

TEST_F(LinuxPlatformTest, ATimerForNobodyIsRefused) {
  LinuxPlatform::Timer timer;
  EXPECT_FALSE(LinuxPlatform::StartTimer(timer, 0x3FFFFFF, Payload(0), 1000, 1000, signal_));
  EXPECT_EQ(timer.id, -1);
  LinuxPlatform::StopTimer(timer);  // nothing to stop
}

TEST_F(LinuxPlatformTest, AnInterruptionArrivesWithItsPayloadAndRegistersAndStandsForNoExpiry) {
  ASSERT_TRUE(
      LinuxPlatform::Interrupt(LinuxPlatform::CurrentThreadId(), Payload(3), signal_, false));
  EXPECT_TRUE(Eventually([] { return arrivals[3].calls == 1; }));
  EXPECT_EQ(arrivals[3].weight, 0);
  EXPECT_NE(arrivals[3].pc, 0u);
}

TEST_F(LinuxPlatformTest, AnInterruptionReachesTheThreadItNames) {
  std::atomic<bool> may_end{false};
  std::atomic<std::uint64_t> id{0};
  std::thread other([&] {
    // ThreadSanitizer 14 loses a signal that comes while it prepares a thread's first blocking
    // call: that one is made before.
    usleep(1);
    id = LinuxPlatform::CurrentThreadId();
    EXPECT_TRUE(Eventually([&] { return may_end.load(); }));
  });
  ASSERT_TRUE(Eventually([&] { return id != 0; }));
  EXPECT_TRUE(LinuxPlatform::Interrupt(id, Payload(0), signal_, false));
  EXPECT_TRUE(Eventually([] { return arrivals[0].calls == 1; }));
  may_end = true;
  other.join();
  // A thread that joins another may go on a moment before the kernel has forgotten it.
  EXPECT_TRUE(
      Eventually([&] { return !LinuxPlatform::Interrupt(id, Payload(0), signal_, false); }));
  EXPECT_EQ(LinuxPlatform::ThreadCpuTimeNs(id), -1);
}

TEST_F(LinuxPlatformTest, CpuTimeOfTheProcessHasThatOfThreadsThatHaveEnded) {
  const std::int64_t before_ns = LinuxPlatform::ProcessCpuTimeNs();
  std::int64_t used_ns = 0;
  std::thread([&] {
    const std::int64_t begin_ns = OwnCpuNs();
    while (OwnCpuNs() - begin_ns < 1'000'000) {
    }
    used_ns = OwnCpuNs() - begin_ns;
  }).join();
  EXPECT_GE(before_ns, 0);
  EXPECT_GE(LinuxPlatform::ProcessCpuTimeNs() - before_ns, used_ns);
}

TEST_F(LinuxPlatformTest, ASignalForNobodyIsStaleAndOneOfSomebodyElseForeign) {
  const auto stale = [] { return internal::GlobalHandlerCounters().stale.load(); };
  const auto foreign = [] { return internal::GlobalHandlerCounters().foreign.load(); };
  const std::uint64_t stale_before = stale();
  const std::uint64_t foreign_before = foreign();
  ASSERT_TRUE(
      LinuxPlatform::Interrupt(LinuxPlatform::CurrentThreadId(), Payload(1000), signal_, false));
  EXPECT_TRUE(Eventually([&] { return stale() == stale_before + 1; }));
  raise(signal_);
  EXPECT_TRUE(Eventually([&] { return foreign() == foreign_before + 1; }));
  EXPECT_EQ(stale(), stale_before + 1);
}

std::atomic<int> previous_calls{0};
std::atomic<int> previous_code{0};

TEST_F(LinuxPlatformTest, AForeignSignalGoesToThePreviousHandler) {
  struct sigaction plain {};
  plain.sa_handler = [](int) { ++previous_calls; };
  ASSERT_EQ(sigaction(SIGUSR1, &plain, nullptr), 0);
  struct sigaction informed {};
  informed.sa_flags = SA_SIGINFO;
  informed.sa_sigaction = [](int, siginfo_t* info, void*) {
    previous_code = info->si_value.sival_int;
  };
  ASSERT_EQ(sigaction(SIGUSR2, &informed, nullptr), 0);
  ASSERT_TRUE(LinuxPlatform::InstallHandler(SIGUSR1).ok());
  ASSERT_TRUE(LinuxPlatform::InstallHandler(SIGUSR2).ok());
  previous_calls = 0;
  raise(SIGUSR1);
  EXPECT_TRUE(Eventually([] { return previous_calls == 1; }));
  ASSERT_EQ(sigqueue(getpid(), SIGUSR2, sigval{.sival_int = 4711}), 0);
  EXPECT_TRUE(Eventually([] { return previous_code == 4711; }));
}

TEST_F(LinuxPlatformTest, WhereTheDefaultWasToDieAForeignSignalIsDropped) {
  ASSERT_TRUE(LinuxPlatform::InstallHandler(SIGALRM).ok());
  const std::uint64_t before = internal::GlobalHandlerCounters().foreign;
  raise(SIGALRM);
  EXPECT_TRUE(Eventually([&] { return internal::GlobalHandlerCounters().foreign == before + 1; }));
}

TEST_F(LinuxPlatformTest, TheHandlerLeavesErrnoAlone) {
  internal::CaptureEntryOf(kArena).function = [](void*, const CaptureTarget& target) {
    errno = EIO;
    return CountArrival(nullptr, target);
  };
  errno = 0;
  const bool is_sent =
      LinuxPlatform::Interrupt(LinuxPlatform::CurrentThreadId(), Payload(0), signal_, false);
  const int at_once = errno;
  EXPECT_TRUE(is_sent);
  EXPECT_EQ(at_once, 0);
  EXPECT_TRUE(Eventually([] {
    errno = 0;
    return arrivals[0].calls == 1 && errno == 0;
  }));
}

TEST_F(LinuxPlatformTest, AReplacedHandlerIsNoticedAndStays) {
  constexpr int kSignal = SIGVTALRM;
  EXPECT_EQ(LinuxPlatform::HandlerStateOf(kSignal), HandlerState::kNotInstalled);
  ASSERT_TRUE(LinuxPlatform::InstallHandler(kSignal).ok());
  EXPECT_EQ(LinuxPlatform::HandlerStateOf(kSignal), HandlerState::kOurs);
  signal(kSignal, SIG_IGN);
  EXPECT_EQ(LinuxPlatform::HandlerStateOf(kSignal), HandlerState::kReplaced);
  ASSERT_TRUE(LinuxPlatform::InstallHandler(kSignal).ok());
  EXPECT_EQ(LinuxPlatform::HandlerStateOf(kSignal), HandlerState::kReplaced)
      << "it is the program's wish";
}

TEST_F(LinuxPlatformTest, SignalsThatCannotBeHandledAreRefusedByName) {
  for (const int number : {-1, 0, SIGKILL, SIGSTOP, 65, 1000}) {
    const absl::Status status = LinuxPlatform::InstallHandler(number);
    EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << number;
    EXPECT_THAT(std::string(status.message()), HasSubstr("sampling.signal_number"));
    EXPECT_EQ(LinuxPlatform::HandlerStateOf(number), HandlerState::kNotInstalled);
  }
}

// Of this very function's frame; AddressSanitizer may keep locals elsewhere.
bool ContainsFrame(const ThreadInfo& thread) {
  const auto address =
      static_cast<Address>(reinterpret_cast<std::uintptr_t>(__builtin_frame_address(0)));
  return address >= thread.stack.low && address < thread.stack.high;
}

TEST_F(LinuxPlatformTest, StackBoundsHoldTheFramesOfEachThread) {
  const ThreadInfo main = LinuxPlatform::CurrentThread();
  EXPECT_EQ(main.id, static_cast<std::uint64_t>(getpid()));
  EXPECT_TRUE(ContainsFrame(main));
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, 256 * 1024), 0);
  pthread_t thread;
  const auto body = [](void*) -> void* {
    const ThreadInfo own = LinuxPlatform::CurrentThread();
    EXPECT_NE(own.id, static_cast<std::uint64_t>(getpid()));
    EXPECT_EQ(own.id, LinuxPlatform::CurrentThreadId());
    EXPECT_TRUE(ContainsFrame(own));
    EXPECT_LE(own.stack.high - own.stack.low, 512u * 1024);
    EXPECT_EQ(LinuxPlatform::CurrentThread().stack.low, own.stack.low);
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, body, nullptr), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

TEST_F(LinuxPlatformTest, StackBoundsAreThoseThatTheCLibrarySays) {
  const auto body = [](void*) -> void* {
    const ThreadInfo own = LinuxPlatform::CurrentThread();
    pthread_attr_t attributes;
    EXPECT_EQ(pthread_getattr_np(pthread_self(), &attributes), 0);
    void* low = nullptr;
    std::size_t size = 0;
    EXPECT_EQ(pthread_attr_getstack(&attributes, &low, &size), 0);
    pthread_attr_destroy(&attributes);
    EXPECT_EQ(own.stack.low, reinterpret_cast<Address>(low));
    EXPECT_EQ(own.stack.high, reinterpret_cast<Address>(low) + size);
    return nullptr;
  };
  const auto run = [&](std::size_t guard_bytes, std::size_t stack_bytes, void* stack) {
    SCOPED_TRACE(stack_bytes);
    pthread_attr_t attributes;
    pthread_attr_init(&attributes);
    ASSERT_EQ(pthread_attr_setguardsize(&attributes, guard_bytes), 0);
    ASSERT_EQ(stack == nullptr ? pthread_attr_setstacksize(&attributes, stack_bytes)
                               : pthread_attr_setstack(&attributes, stack, stack_bytes),
              0);
    pthread_t thread;
    ASSERT_EQ(pthread_create(&thread, &attributes, body, nullptr), 0);
    pthread_join(thread, nullptr);
    pthread_attr_destroy(&attributes);
  };
  constexpr std::size_t kBytes = 256 * 1024;
  run(0, kBytes, nullptr);
  run(4096, 2 * kBytes, nullptr);
  run(65536, 3 * kBytes, nullptr);
  const auto own_stack = std::make_unique<std::byte[]>(kBytes);
  run(0, kBytes, own_stack.get());
}

TEST_F(LinuxPlatformTest, AThreadOfOursBlocksAllSignalsAndItsStarterDoesNot) {
  sigset_t inside;
  sigset_t before;
  sigset_t after;
  std::string name;
  pthread_sigmask(SIG_SETMASK, nullptr, &before);
  auto thread = LinuxPlatform::RunOnOwnThread("a name longer than fifteen", [&] {
    pthread_sigmask(SIG_SETMASK, nullptr, &inside);
    char buffer[16] = {};
    pthread_getname_np(pthread_self(), buffer, sizeof(buffer));
    name = buffer;
  });
  ASSERT_TRUE(thread.IsRunning());
  pthread_sigmask(SIG_SETMASK, nullptr, &after);
  thread.Join();
  EXPECT_FALSE(thread.IsRunning());
  thread.Join();  // does nothing
  EXPECT_EQ(name, "a name longer t");
  for (int number = 1; number < 65; ++number) {
    EXPECT_EQ(sigismember(&before, number), sigismember(&after, number)) << number;
    if (number == SIGKILL || number == SIGSTOP || number == 32 || number == 33)
      continue;  // these cannot be blocked
    EXPECT_EQ(sigismember(&inside, number), 1) << number;
  }
}

// Touches that much of the calling thread's stack, a page at a time from the top.
void UseStack(std::size_t bytes) {
  constexpr std::size_t kFrameBytes = 4096;
  volatile char frame[kFrameBytes];
  frame[0] = 1;
  if (bytes > kFrameBytes) UseStack(bytes - kFrameBytes);
  frame[kFrameBytes - 1] = frame[0];
}

TEST_F(LinuxPlatformTest, TimeOfOurThreadsIsKnownAlsoWhenTheyHaveEnded) {
  constexpr std::int64_t kBurnNs = 20'000'000;
  const std::int64_t before_ns = LinuxPlatform::OwnCpuTimeNs();
  std::int64_t own_ns = 0;
  auto own = LinuxPlatform::RunOnOwnThread("strobe-own", [&] {
    const std::uint64_t id = LinuxPlatform::CurrentThreadId();
    while (LinuxPlatform::ThreadCpuTimeNs(id) < kBurnNs) {
    }
    EXPECT_EQ(LinuxPlatform::ThreadName(id), "strobe-own");
    EXPECT_GE(LinuxPlatform::OwnCpuTimeNs() - before_ns, kBurnNs);
    own_ns = LinuxPlatform::ThreadCpuTimeNs(id);
  });
  own.Join();
  EXPECT_GE(LinuxPlatform::OwnCpuTimeNs() - before_ns, own_ns);
}

TEST_F(LinuxPlatformTest, AThreadOfOursHasItsOwnStackSizeWhateverTheProgramsDefaultIs) {
  pthread_attr_t before;
  ASSERT_EQ(pthread_getattr_default_np(&before), 0);
  pthread_attr_t small;
  ASSERT_EQ(pthread_attr_init(&small), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&small, 64 * 1024), 0);
  ASSERT_EQ(pthread_setattr_default_np(&small), 0);
  StackBounds stack;
  auto thread = LinuxPlatform::RunOnOwnThread("deep", [&] {
    stack = LinuxPlatform::CurrentThread().stack;
    UseStack(stack.high - stack.low > 512 * 1024 ? 512 * 1024 : 0);
  });
  thread.Join();
  ASSERT_EQ(pthread_setattr_default_np(&before), 0);
  pthread_attr_destroy(&before);
  pthread_attr_destroy(&small);
  EXPECT_GE(stack.high - stack.low, 512u * 1024);
}

// The scheduling of the calling thread.
struct Scheduling {
  int policy = sched_getscheduler(0);
  int cpu_count = 0;

  Scheduling() {
    cpu_set_t cpus;
    if (sched_getaffinity(0, sizeof(cpus), &cpus) == 0) cpu_count = CPU_COUNT(&cpus);
  }
};

TEST_F(LinuxPlatformTest, AThreadOfOursIsOrdinaryWhereARealTimeThreadOfOneCpuStartsIt) {
  const Scheduling process;
  if (process.cpu_count < 2) GTEST_SKIP() << "one CPU only";
  bool is_real_time = false;
  Scheduling starter;
  Scheduling own;
  Scheduling background;
  std::thread([&] {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    ASSERT_EQ(sched_setaffinity(0, sizeof(one), &one), 0);
    const sched_param priority{.sched_priority = 1};
    is_real_time = sched_setscheduler(0, SCHED_FIFO, &priority) == 0;
    LinuxPlatform::RunOnOwnThread("own", [&] {
      own = Scheduling();
      LinuxPlatform::WorkInBackground();
      background = Scheduling();
    }).Join();
    starter = Scheduling();
  }).join();
  EXPECT_EQ(own.policy, SCHED_OTHER);
  EXPECT_EQ(own.cpu_count, process.cpu_count);
  EXPECT_EQ(background.policy, SCHED_BATCH);
  EXPECT_EQ(starter.policy, is_real_time ? SCHED_FIFO : SCHED_OTHER) << "it stays as it was";
  EXPECT_EQ(starter.cpu_count, 1);
  if (!is_real_time) GTEST_SKIP() << "real-time priority needs CAP_SYS_NICE or RLIMIT_RTPRIO";
}

// In a process of its own: exits with 0 where a thread that cannot be had is reported.
[[noreturn]] void AskForAThreadWithoutMemory() {
  const rlimit none{.rlim_cur = 4096, .rlim_max = RLIM_INFINITY};
  setrlimit(RLIMIT_AS, &none);
  const auto thread = LinuxPlatform::RunOnOwnThread("refused", [] { _exit(2); });
  _exit(thread.IsRunning() ? 1 : 0);
}

TEST_F(LinuxPlatformTest, AThreadThatTheSystemRefusesIsReported) {
  if (kIsSanitized) GTEST_SKIP() << "a sanitizer needs the address space that this test takes away";
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(AskForAThreadWithoutMemory(), ::testing::ExitedWithCode(0), "");
}

TEST_F(LinuxPlatformTest, MemoryIsZeroedAndWritable) {
  constexpr std::size_t kBytes = 1 << 20;
  const LinuxPlatform::Mapping mapping = LinuxPlatform::MapMemory(kBytes);
  auto* const memory = reinterpret_cast<unsigned char*>(mapping.bytes.data());
  ASSERT_NE(memory, nullptr);
  for (std::size_t i = 0; i < kBytes; i += 1000) EXPECT_EQ(memory[i], 0);
  memory[kBytes - 1] = 1;
  LinuxPlatform::UnmapMemory(mapping);
  EXPECT_TRUE(LinuxPlatform::MapMemory(std::uint64_t{1} << 60).bytes.empty())
      << "more than there is";
}

// A line of /proc/self/smaps for the mapping that holds `address`.
std::string MappingLine(const void* address, const std::string& key) {
  std::ifstream smaps("/proc/self/smaps");
  bool is_in = false;
  for (std::string line; std::getline(smaps, line);) {
    std::uintptr_t start = 0;
    std::uintptr_t limit = 0;
    if (std::sscanf(line.c_str(), "%" SCNxPTR "-%" SCNxPTR " ", &start, &limit) == 2) {
      is_in = reinterpret_cast<std::uintptr_t>(address) >= start &&
              reinterpret_cast<std::uintptr_t>(address) < limit;
    }
    if (is_in && line.starts_with(key)) return line.substr(key.size());
  }
  return "";
}

TEST_F(LinuxPlatformTest, MemoryIsCommittedPageByPageAndGivenBack) {
  constexpr std::size_t kBytes = 16 << 20;
  const LinuxPlatform::Mapping mapping = LinuxPlatform::MapMemory(kBytes);
  auto* const memory = reinterpret_cast<unsigned char*>(mapping.bytes.data());
  ASSERT_NE(memory, nullptr);
  if (std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled")) {
    EXPECT_NE(MappingLine(memory, "VmFlags:").find(" nh"), std::string::npos) << "no huge pages";
  }
  for (std::size_t i = 0; i < kBytes; i += 1 << 18) memory[i] = 1;
  EXPECT_GT(std::stoul(MappingLine(memory, "Rss:")), 0U);
  // Whole pages alone: what shares one with something else stays.
  LinuxPlatform::DiscardMemory(memory + 1, kBytes - 1);
  EXPECT_EQ(memory[0], 1);
  EXPECT_LE(std::stoul(MappingLine(memory, "Rss:")), 64U);
  LinuxPlatform::DiscardMemory(memory + 1, 10);
  LinuxPlatform::DiscardMemory(memory, kBytes);
  EXPECT_EQ(std::stoul(MappingLine(memory, "Rss:")), 0U);
  LinuxPlatform::UnmapMemory(mapping);
}

TEST_F(LinuxPlatformTest, ALineIsOneLine) {
  ::testing::internal::CaptureStderr();
  LinuxPlatform::WriteLine("strobe: a line");
  LinuxPlatform::WithOwnFiles([] { LinuxPlatform::WriteLine("strobe: another line"); });
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "strobe: a line\nstrobe: another line\n");
}

TEST_F(LinuxPlatformTest, LinesGoWhereTheVariableSays) {
  const std::string directory =
      ::testing::TempDir() + "strobe-messages-" + std::to_string(getpid());
  ASSERT_EQ(mkdir(directory.c_str(), 0700), 0);
  const std::string path = directory + "/log";
  ::testing::internal::CaptureStderr();
  internal::KeepMessageTarget(path);
  LinuxPlatform::WriteLine("strobe: a line");
  LinuxPlatform::WithOwnFiles([] { LinuxPlatform::WriteLine("strobe: another line"); });
  internal::KeepMessageTarget(directory + "/no/log");
  LinuxPlatform::WriteLine("strobe: to a file that cannot be");
  internal::KeepMessageTarget("none");
  LinuxPlatform::WriteLine("strobe: to nobody");
  internal::KeepMessageTarget(std::nullopt);
  EXPECT_EQ(::testing::internal::GetCapturedStderr(), "");
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  EXPECT_EQ(text.str(), "strobe: a line\nstrobe: another line\n");
  unlink(path.c_str());
  rmdir(directory.c_str());
}

TEST_F(LinuxPlatformTest, LinesGoToTheProgramsOwnLog) {
  static std::string log;
  log.clear();
  internal::KeepMessageTarget("none");
  const MessageSink before =
      SetMessageSink([](std::string_view line) { log += std::string(line) + ";"; });
  LinuxPlatform::WriteLine("strobe: a line");
  LinuxPlatform::WithOwnFiles([] { LinuxPlatform::WriteLine("strobe: another line"); });
  SetMessageSink(before);
  internal::KeepMessageTarget(std::nullopt);
  EXPECT_EQ(log, "strobe: a line;strobe: another line;") << "code beats the environment";
}

// In a process of its own: there is no way back.
TEST_F(LinuxPlatformTest, VariablesAreIgnoredWhereTheProgramSaysSo) {
  const auto ignore = [] {
    setenv("STROBE_ENABLED", "0", 1);
    const bool is_there = LinuxPlatform::EnvironmentVariable("STROBE_ENABLED").has_value();
    IgnoreVariables();
    const bool is_ignored = !LinuxPlatform::EnvironmentVariable("STROBE_ENABLED") &&
                            LinuxPlatform::EnvironmentNames("STROBE_").empty();
    const bool has_others = LinuxPlatform::EnvironmentVariable("PATH").has_value();
    _exit(is_there && is_ignored && has_others ? 0 : 1);
  };
  EXPECT_EXIT(ignore(), ::testing::ExitedWithCode(0), "");
}

TEST_F(LinuxPlatformTest, ReadStackCopiesUpToWhatIsNotMapped) {
  constexpr std::size_t kPage = 4096;
  auto* const pages = static_cast<std::uint8_t*>(
      mmap(nullptr, 4 * kPage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(pages, MAP_FAILED);
  for (std::size_t i = 0; i < 4 * kPage; ++i) pages[i] = static_cast<std::uint8_t>(i % 251);
  ASSERT_EQ(munmap(pages + 2 * kPage, kPage), 0);
  std::vector<std::uint8_t> copy(6 * kPage);
  const auto base = reinterpret_cast<Address>(pages);
  const std::size_t got = LinuxPlatform::ReadStack(base + 8, copy);
  if (got == 0 && (errno == ENOSYS || errno == EPERM))
    GTEST_SKIP() << "process_vm_readv: " << std::strerror(errno);
  EXPECT_EQ(got, 2 * kPage - 8);
  EXPECT_TRUE(std::equal(copy.begin(), copy.begin() + static_cast<std::ptrdiff_t>(got), pages + 8));
  EXPECT_EQ(LinuxPlatform::ReadStack(base + 2 * kPage, copy), 0u);
  EXPECT_EQ(LinuxPlatform::ReadStack(base + 3 * kPage, std::span(copy).first(16)), 16u);
  EXPECT_EQ(LinuxPlatform::ReadStack(0, copy), 0u);
  EXPECT_EQ(LinuxPlatform::ReadStack(~Address{7}, copy), 0u);
  munmap(pages, 4 * kPage);
}

TEST_F(LinuxPlatformTest, ReadMemoryNeedsNoFileDescriptor) {
  std::array<std::uint8_t, 64> copy{};
  const auto address = reinterpret_cast<Address>(&copy);
  if (LinuxPlatform::ReadStack(address, copy) == 0) GTEST_SKIP() << "no process_vm_readv here";
  rlimit files{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &files), 0);
  const rlimit none{.rlim_cur = 0, .rlim_max = files.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &none), 0);
  EXPECT_EQ(LinuxPlatform::ReadMemory(address, copy), copy.size());
  setrlimit(RLIMIT_NOFILE, &files);
}

}  // namespace
}  // namespace strobe
