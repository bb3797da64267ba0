#include "strobe/runtime/control/core_base.h"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/testing/fakes/manual_platform.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Manual = testing::ManualPlatform;

// What happens to a core that outlives its owner.
struct CoreLog {
  std::string calls;
  bool is_deleted = false;
};

// Notes what it is asked for, and refuses or runs out of memory where it is told to.
class NotingCore final : public CoreBase<Manual> {
 public:
  NotingCore(ProfilerOptions options, CoreLog& log) : CoreBase(std::move(options)), log_(log) {}
  ~NotingCore() override {
    End();
    log_.is_deleted = true;
  }
  bool CaptureHere(const EventSample& /*event*/,
                   const NativeRegisters* /*registers*/) noexcept override {
    return false;
  }
  [[nodiscard]] bool IsRunning() const override { return is_running_; }
  [[nodiscard]] OwnRegistration FindOwnRegistration() const override { return {}; }

  absl::Status begin_status;
  absl::Status may_stop;
  bool has_no_memory = false;

 private:
  void Note(const char* call) {
    if (has_no_memory) throw std::bad_alloc();
    log_.calls += call;
  }
  absl::StatusOr<RegisteredHere> TryRegister(std::string_view /*name*/) override {
    Note("r");
    ++registered_;
    return RegisteredHere{.registered = this, .thread_id = Manual::CurrentThreadId()};
  }
  void CountRefused() override { log_.calls += "f"; }
  bool Unregister(void* /*registered*/, std::uint64_t /*thread_id*/) override {
    return --registered_ == 0 && is_orphan_;
  }
  std::size_t Orphan() override {
    is_orphan_ = true;
    return registered_;
  }
  absl::StatusOr<std::shared_ptr<GeneratedCodeOwner>> TryToOpenCode() override {
    Note("c");
    return absl::UnimplementedError("no code");
  }
  [[nodiscard]] Stats TryToCollectStats() override {
    Note("s");
    Stats stats;
    AddOwnTo(stats);
    return stats;
  }
  [[nodiscard]] std::string TryToDiagnose() override {
    Note("d");
    return "well";
  }
  [[nodiscard]] absl::StatusOr<Profile> TryToRecord(const RecordingOptions& /*options*/) override {
    Note("p");
    return NotRunning();
  }
  [[nodiscard]] absl::Status TryToDump(
      const std::shared_ptr<const std::atomic<bool>>& /*cancelled*/) override {
    Note("d");
    return NotRunning();
  }
  absl::Status TryToBegin() override {
    Note("b");
    is_running_ = begin_status.ok();
    return begin_status;
  }
  void NoteStart(const absl::Status& status) override { log_.calls += status.ok() ? "+" : "-"; }
  [[nodiscard]] absl::Status MayStop() const override { return may_stop; }
  absl::Status FlushSession() override { return is_running_ ? absl::OkStatus() : NotRunning(); }
  absl::Status EndSession(bool ends_process) override {
    log_.calls += ends_process ? "E" : "e";
    is_running_ = false;
    return absl::OkStatus();
  }
  [[nodiscard]] std::size_t arena_number() const override { return 0; }
  [[nodiscard]] std::chrono::nanoseconds StopPatience() const override {
    return std::chrono::seconds(1);
  }

  CoreLog& log_;
  bool is_running_ = false;
  bool is_orphan_ = false;
  std::size_t registered_ = 0;
};

class CoreBaseTest : public ::testing::Test {
 protected:
  CoreBaseTest() { Manual::Reset(); }
  CoreLog log_;
};

TEST_F(CoreBaseTest, BeginsAndEndsOneSessionAtATime) {
  NotingCore core({}, log_);
  EXPECT_EQ(core.Stop(), NotRunning());
  EXPECT_EQ(core.Flush(), NotRunning());
  EXPECT_TRUE(core.Start().ok());
  EXPECT_EQ(core.Start(), AlreadyRunning());
  EXPECT_TRUE(core.Flush().ok());
  EXPECT_TRUE(core.Stop().ok());
  EXPECT_EQ(log_.calls, "b+e");
}

TEST_F(CoreBaseTest, EndsWhatRunsAtItsEnd) {
  { EXPECT_TRUE(NotingCore({}, log_).Start().ok()); }
  EXPECT_EQ(log_.calls, "b+e");
}

TEST_F(CoreBaseTest, ASessionThatCannotBeginDoesNotRun) {
  NotingCore core({}, log_);
  core.begin_status = absl::UnavailableError("no room");
  EXPECT_EQ(core.Start(), core.begin_status);
  EXPECT_EQ(core.Stop(), NotRunning());
  EXPECT_EQ(log_.calls, "b-");
}

TEST_F(CoreBaseTest, AThreadThatCannotStopTheSessionLeavesItRunning) {
  NotingCore core({}, log_);
  EXPECT_TRUE(core.Start().ok());
  core.may_stop = absl::FailedPreconditionError("not from here");
  EXPECT_EQ(core.Stop(), core.may_stop);
  EXPECT_EQ(core.Start(), AlreadyRunning());
}

TEST_F(CoreBaseTest, EachCallSaysThatMemoryHasRunOut) {
  NotingCore core({}, log_);
  core.has_no_memory = true;
  EXPECT_EQ(core.Start(), OutOfMemory());
  EXPECT_EQ(core.RegisterThread("one").status(), OutOfMemory());
  EXPECT_EQ(core.RegisterCode({}).status(), OutOfMemory());
  EXPECT_EQ(core.Record({.duration = std::chrono::seconds(1)}).status(), OutOfMemory());
  EXPECT_EQ(core.Diagnose(), "Out of memory.");
  EXPECT_EQ(core.GetStats().out_of_memory, 6u) << "this call is one of them";
  core.has_no_memory = false;
  EXPECT_EQ(core.GetStats().out_of_memory, 6u);
  EXPECT_EQ(log_.calls, "-fs");
}

TEST_F(CoreBaseTest, AsksForARecordingOnlyWithOptionsThatAreValid) {
  NotingCore core({}, log_);
  EXPECT_FALSE(core.Record({.duration = std::chrono::seconds(-1)}).ok());
  EXPECT_EQ(log_.calls, "");
}

TEST_F(CoreBaseTest, ANewSessionNeedsASystemThatIsKnown) {
  NotingCore core({.sampling = {.toggle_signal = 12}}, log_);
  EXPECT_FALSE(core.ToggleStatus().ok()) << "this platform has no signals";
  NotingCore other({}, log_);
  EXPECT_TRUE(other.ToggleStatus().ok()) << "none is asked for";
}

TEST_F(CoreBaseTest, LivesUntilItsLastRegistrationEnds) {
  auto core = std::make_unique<NotingCore>(ProfilerOptions{}, log_);
  {
    const Registration one = core->RegisterThread("one");
    EXPECT_TRUE(one.status().ok());
    core.release()->Retire();
    EXPECT_FALSE(log_.is_deleted);
  }
  EXPECT_TRUE(log_.is_deleted);
  EXPECT_THAT(Manual::With([](auto& state) { return state.lines; }),
              ElementsAre(HasSubstr("before 1 thread(s) had ended")));
}

TEST_F(CoreBaseTest, RetiresAtOnceWithoutRegistrations) {
  std::make_unique<NotingCore>(ProfilerOptions{}, log_).release()->Retire();
  EXPECT_TRUE(log_.is_deleted);
}

}  // namespace
}  // namespace strobe::internal
