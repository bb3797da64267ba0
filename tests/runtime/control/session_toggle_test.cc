#include "strobe/runtime/control/session_toggle.h"

#include <condition_variable>
#include <mutex>

#include "gtest/gtest.h"
#include "strobe/platform/native.h"
#include "strobe/platform/unsupported_platform.h"

namespace strobe::internal {
namespace {

// An inbox whose signals a test sends.
class ManualInbox {
 public:
  static constexpr int kRefused = 10;

  absl::Status Open(int signal) {
    if (signal == kRefused) return absl::FailedPreconditionError("it has a handler");
    const std::lock_guard lock(mutex);
    is_closed = false;
    signals = 0;
    return absl::OkStatus();
  }
  bool Wait() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [] { return is_closed || signals != 0; });
    signals = 0;
    return !is_closed;
  }
  void Close() {
    const std::lock_guard lock(mutex);
    is_closed = true;
    changed.notify_all();
  }
  static void Send() {
    const std::lock_guard lock(mutex);
    ++signals;
    changed.notify_all();
  }

 private:
  static inline std::mutex mutex;
  static inline std::condition_variable changed;
  static inline bool is_closed = true;
  static inline int signals = 0;
};
struct ManualInboxPlatform : NativePlatform {
  using SignalInbox = ManualInbox;
};
struct NoInboxPlatform : UnsupportedPlatform {};
static_assert(!ReceivesSignals<NoInboxPlatform>);

// Counts toggles, and holds each until the test lets it end.
class Toggles {
 public:
  void Run() {
    std::unique_lock lock(mutex_);
    ++begun_;
    changed_.notify_all();
    changed_.wait(lock, [this] { return allowed_ >= begun_; });
  }
  void AwaitBegun(int count) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return begun_ >= count; });
  }
  void Allow(int count) {
    const std::lock_guard lock(mutex_);
    allowed_ += count;
    changed_.notify_all();
  }
  int begun() {
    const std::lock_guard lock(mutex_);
    return begun_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  int begun_ = 0;
  int allowed_ = 0;
};

TEST(SessionToggle, TogglesOnceForTheSignalsThatCameDuringTheLastOne) {
  if (!NativePlatform::Available().ok()) GTEST_SKIP() << NativePlatform::Available();
  Toggles toggles;
  {
    const SessionToggle<ManualInboxPlatform> toggle("an.option", 12, [&] { toggles.Run(); });
    ASSERT_TRUE(toggle.status().ok()) << toggle.status();
    ManualInbox::Send();
    toggles.AwaitBegun(1);
    for (int i = 0; i < 3; ++i) ManualInbox::Send();
    toggles.Allow(1);
    toggles.AwaitBegun(2);
    toggles.Allow(1);
    ManualInbox::Send();
    toggles.AwaitBegun(3);
    toggles.Allow(1);
  }
  EXPECT_EQ(toggles.begun(), 3);
}

TEST(SessionToggle, EndsWithoutASignal) {
  int toggled = 0;
  {
    const SessionToggle<ManualInboxPlatform> toggle("an.option", 12, [&] { ++toggled; });
  }
  EXPECT_EQ(toggled, 0);
}

TEST(SessionToggle, SaysWhyASignalTogglesNothing) {
  const SessionToggle<ManualInboxPlatform> refused("an.option", ManualInbox::kRefused, [] {});
  EXPECT_EQ(refused.status(), absl::FailedPreconditionError("an.option: it has a handler"));
  const SessionToggle<NoInboxPlatform> without("an.option", 12, [] {});
  EXPECT_EQ(without.status(), absl::UnimplementedError("an.option: this system has no signals"));
}

}  // namespace
}  // namespace strobe::internal
