#include "../../../src/platform/linux/signals/signal_handler.h"

#include <pthread.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <optional>

#include "gtest/gtest.h"
#include "strobe/clock/system_clock.h"
#include "strobe/platform/capture_target.h"

// What the handler does with timers and requests is tested in linux_platform_test.cc, too.
namespace strobe::internal {
namespace {

constexpr std::uint8_t kArena = kMaxArenas - 2;
std::optional<CaptureTarget> captured;

bool KeepTarget(void* /*context*/, const CaptureTarget& target) {
  captured = target;
  errno = EIO;
  return true;
}

std::uint64_t HandledElsewhere() { return GlobalHandlerCounters().foreign; }
std::uint64_t PayloadOf(std::uint32_t index) {
  return ChannelToken{.arena = kArena, .index = index}.Pack();
}

// A signal as the system describes it to a handler.
siginfo_t TimerSignal(std::uint64_t payload, int overrun) {
  siginfo_t info{};
  info.si_code = SI_TIMER;
  info.si_overrun = overrun;
  info.si_value.sival_ptr = reinterpret_cast<void*>(payload);  // NOLINT(performance-no-int-to-ptr)
  return info;
}

class SignalHandlerTest : public ::testing::Test {
 protected:
  SignalHandlerTest() {
    captured.reset();
    CaptureEntryOf(kArena).function = &KeepTarget;
  }
  ~SignalHandlerTest() override { CaptureEntryOf(kArena).function = nullptr; }
};

TEST_F(SignalHandlerTest, ATimersSignalStandsForItsExpiries) {
  siginfo_t info = TimerSignal(PayloadOf(5), 3);
  errno = 0;
  HandleSignal(SIGURG, &info, nullptr);
  EXPECT_EQ(errno, 0);
  ASSERT_TRUE(captured);
  EXPECT_EQ(captured->token.index, 5u);
  EXPECT_EQ(captured->timer_expiries, 4) << "one, and those that the signal came too late for";
  EXPECT_EQ(captured->registers, nullptr) << "a handler that chains to this one may have none";
}

TEST_F(SignalHandlerTest, ARequestStandsForNoExpiry) {
  for (const int overrun : {kRequest, kRequestOfRunningThread}) {
    siginfo_t info = TimerSignal(PayloadOf(6), overrun);
    HandleSignal(SIGURG, &info, nullptr);
    ASSERT_TRUE(captured);
    EXPECT_EQ(captured->timer_expiries, 0);
    EXPECT_FALSE(captured->is_late) << "it does not say when it was sent";
    captured.reset();
  }
}

TEST_F(SignalHandlerTest, SignalsOfOthersAreNotCaptured) {
  const std::uint64_t before = HandledElsewhere();
  siginfo_t other = TimerSignal(PayloadOf(5) ^ std::uint64_t{1} << 63, 0);
  HandleSignal(SIGURG, &other, nullptr);
  siginfo_t sent{};
  sent.si_code = SI_USER;
  sent.si_pid = getpid();
  HandleSignal(SIGURG, &sent, nullptr);
  HandleSignal(SIGURG, nullptr, nullptr);
  EXPECT_FALSE(captured);
  EXPECT_EQ(HandledElsewhere(), before + 3);
}

TEST_F(SignalHandlerTest, ARequestOfARunningThreadThatCameTooLateIsLate) {
  const int signal = ChooseSignal();
  ASSERT_TRUE(InstallSignalHandler(signal).ok());
  const auto send = [signal](bool may_be_late, std::int64_t blocked_ns) {
    captured.reset();
    sigset_t only;
    sigset_t before;
    sigemptyset(&only);
    sigaddset(&only, signal);
    pthread_sigmask(SIG_BLOCK, &only, &before);
    EXPECT_TRUE(SendRequest(static_cast<std::uint64_t>(getpid()),
                            static_cast<std::uint64_t>(syscall(SYS_gettid)), PayloadOf(7), signal,
                            true, may_be_late));
    const std::int64_t until_ns = SystemClock().MonotonicNs() + blocked_ns;
    while (SystemClock().MonotonicNs() < until_ns) {
    }
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    // A sanitizer may hold the signal back until the thread calls something.
    for (int i = 0; i < 100'000 && !captured.has_value(); ++i) usleep(100);
    return captured.has_value() && captured->is_late;
  };
  EXPECT_TRUE(send(true, 3 * kLateNs));
  ASSERT_TRUE(captured);
  EXPECT_NE(captured->registers, nullptr);
  EXPECT_FALSE(send(false, 3 * kLateNs)) << "it does not matter to the sender";
  EXPECT_TRUE(captured);
}

TEST_F(SignalHandlerTest, AThreadThatDoesNotExistGetsNoRequest) {
  EXPECT_FALSE(
      SendRequest(static_cast<std::uint64_t>(getpid()), 0x3FFFFFFF, PayloadOf(0), SIGURG, false));
}

TEST(InstallSignalHandlerTest, SaysWhichSignalsAreInstalled) {
  int signal = SIGRTMIN + 1;  // the first that no test has installed
  while (SignalHandlerState(signal) != HandlerState::kNotInstalled) ++signal;
  sigset_t before = InstalledSignals();
  EXPECT_EQ(sigismember(&before, signal), 0);
  ASSERT_TRUE(InstallSignalHandler(signal).ok());
  EXPECT_EQ(SignalHandlerState(signal), HandlerState::kOurs);
  sigset_t after = InstalledSignals();
  EXPECT_EQ(sigismember(&after, signal), 1);
  EXPECT_TRUE(InstallMutex().try_lock()) << "held while a handler is installed, and no longer";
  InstallMutex().unlock();
  EXPECT_EQ(InstallSignalHandler(kSignalLimit).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(SignalHandlerState(kSignalLimit), HandlerState::kNotInstalled);
}

TEST(ChooseSignalTest, IsOneThatTheProgramDoesNotUse) {
  const int first = ChooseSignal();
  struct sigaction before {};
  ASSERT_EQ(sigaction(first, nullptr, &before), 0);
  struct sigaction of_program {};
  of_program.sa_handler = [](int) {};
  ASSERT_EQ(sigaction(first, &of_program, nullptr), 0);
  const int second = ChooseSignal();
  EXPECT_NE(second, first);
  EXPECT_NE(second, SIGKILL);
  ASSERT_EQ(sigaction(first, &before, nullptr), 0);
  EXPECT_EQ(ChooseSignal(), first);
}

}  // namespace
}  // namespace strobe::internal
