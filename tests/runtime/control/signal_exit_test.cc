#include "strobe/runtime/control/signal_exit.h"

#include <condition_variable>
#include <future>
#include <mutex>

#include "gtest/gtest.h"
#include "strobe/platform/unsupported_platform.h"
#include "strobe/testing/fakes/manual_platform.h"

namespace strobe::internal {
namespace {

using testing::ManualPlatform;

// Signals that a test sends. The process does not end.
class ManualEndingSignals {
 public:
  bool Take(std::int64_t patience_ns) {
    const std::lock_guard lock(mutex);
    patience = patience_ns;
    ++taken;
    return has_signals;
  }
  bool Await() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [] { return is_closed || has_come; });
    return has_come;
  }
  void Close() {
    const std::lock_guard lock(mutex);
    is_closed = true;
    changed.notify_all();
  }
  void EndProcess() {
    const std::lock_guard lock(mutex);
    is_ended = true;
  }
  void GiveBack() {
    const std::lock_guard lock(mutex);
    is_given_back = true;
  }
  static void Send() {
    const std::lock_guard lock(mutex);
    has_come = true;
    changed.notify_all();
  }
  static void Reset() {
    has_signals = true;
    is_closed = has_come = is_ended = is_given_back = false;
    taken = 0;
    patience = 0;
  }

  static inline std::mutex mutex;
  static inline std::condition_variable changed;
  static inline bool has_signals = true;
  static inline bool is_closed = false;
  static inline bool has_come = false;
  static inline bool is_ended = false;
  static inline bool is_given_back = false;
  static inline int taken = 0;
  static inline std::int64_t patience = 0;
};
struct SignalPlatform : ManualPlatform {
  using EndingSignals = ManualEndingSignals;
};
static_assert(EndsBySignals<SignalPlatform>);
static_assert(!EndsBySignals<UnsupportedPlatform>);

class SignalExitTest : public ::testing::Test {
 protected:
  SignalExitTest() {
    ManualPlatform::Reset();
    ManualEndingSignals::Reset();
  }
  static constexpr std::chrono::seconds kPatience{5};
};

TEST_F(SignalExitTest, StopsBeforeTheProcessEnds) {
  std::promise<bool> was_ended;
  {
    SignalExit<SignalPlatform> exit(kPatience,
                                    [&] { was_ended.set_value(ManualEndingSignals::is_ended); });
    exit.Take();
    EXPECT_EQ(ManualEndingSignals::patience, 5'000'000'000);
    ManualEndingSignals::Send();
    EXPECT_FALSE(was_ended.get_future().get());
  }
  EXPECT_TRUE(ManualEndingSignals::is_ended);
}

TEST_F(SignalExitTest, WithoutASignalNothingIsStopped) {
  bool is_stopped = false;
  {
    SignalExit<SignalPlatform> exit(kPatience, [&] { is_stopped = true; });
    exit.Take();
    exit.Take();  // of the next session
  }
  EXPECT_EQ(ManualEndingSignals::taken, 2);
  EXPECT_FALSE(is_stopped);
  EXPECT_FALSE(ManualEndingSignals::is_ended);
}

TEST_F(SignalExitTest, WithoutSignalsThereIsNoThread) {
  ManualEndingSignals::has_signals = false;
  ManualPlatform::With([](auto& state) { state.threads_left = 1; });
  {
    SignalExit<SignalPlatform> exit(kPatience, [] {});
    exit.Take();
  }
  EXPECT_EQ(ManualPlatform::With([](auto& state) { return state.threads_left; }), 1);
}

// Without its thread, the object could not end the process that the signal has stopped.
TEST_F(SignalExitTest, WithoutAThreadTheSignalsAreGivenBack) {
  ManualPlatform::With([](auto& state) { state.threads_left = 0; });
  SignalExit<SignalPlatform> exit(kPatience, [] {});
  exit.Take();
  EXPECT_TRUE(ManualEndingSignals::is_given_back);
  const auto lines = ManualPlatform::With([](auto& state) { return state.lines; });
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_NE(lines[0].find("export_on_signal: Resource temporarily"), std::string::npos) << lines[0];
}

TEST_F(SignalExitTest, ASystemWithoutSuchSignalsHasNothingToTake) {
  SignalExit<UnsupportedPlatform> exit(kPatience, [] {});
  exit.Take();
}

}  // namespace
}  // namespace strobe::internal
