#include "strobe/runtime/session/recording_calls.h"

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

// Threads that call Wait, and the test as the collector.
class RecordingCallsTest : public ::testing::Test {
 protected:
  void TearDown() override {
    calls_.Close([](RecordingCall&) {});
    for (std::thread& thread : threads_) thread.join();
  }
  std::shared_ptr<RecordingCall> Begin() {
    auto call = std::make_shared<RecordingCall>();
    const std::size_t before = CountOfDue(INT64_MAX);
    threads_.emplace_back([this, call] { EXPECT_TRUE(calls_.Wait(call)); });
    while (CountOfDue(INT64_MAX) == before) std::this_thread::yield();
    return call;
  }
  RecordingCalls::Calls Due(std::int64_t now_ns) {
    const std::lock_guard lock(monitor_);
    return calls_.Due(now_ns);
  }
  std::size_t CountOfDue(std::int64_t now_ns) {
    std::size_t count = 0;
    for (const auto& call : Due(now_ns)) count += call != nullptr ? 1 : 0;
    return count;
  }
  std::int64_t DueNs() {
    const std::lock_guard lock(monitor_);
    return calls_.due_ns();
  }
  void Serve(std::int64_t now_ns, std::int64_t end_ns) {
    calls_.Serve(
        Due(now_ns),
        [&](RecordingCall& call) {
          call.place = begun_++;
          call.end_ns = end_ns;
        },
        [&](RecordingCall&) { ++ended_; });
  }

  Monitor monitor_;
  RecordingCalls calls_{monitor_};
  std::vector<std::thread> threads_;
  std::size_t begun_ = 0;
  int ended_ = 0;
};

TEST_F(RecordingCallsTest, ACallBeginsAtOnceAndEndsInItsTime) {
  EXPECT_EQ(DueNs(), INT64_MAX);
  const auto call = Begin();
  EXPECT_EQ(DueNs(), INT64_MIN);
  Serve(5, 100);
  EXPECT_EQ(DueNs(), 100);
  Serve(99, 0);
  EXPECT_EQ(ended_, 0);
  Serve(100, 0);
  EXPECT_EQ(ended_, 1);
  EXPECT_EQ(DueNs(), INT64_MAX);
  threads_[0].join();
  threads_.clear();
  EXPECT_TRUE(call->is_done);
  EXPECT_TRUE(call->status.ok());
}

TEST_F(RecordingCallsTest, OneThatCannotBeginIsDone) {
  const auto call = Begin();
  calls_.Serve(
      Due(0), [](RecordingCall& refused) { refused.status = absl::InternalError("no"); },
      [](RecordingCall&) { FAIL() << "it has not begun"; });
  threads_[0].join();
  threads_.clear();
  EXPECT_EQ(call->status.message(), "no");
}

TEST_F(RecordingCallsTest, OneBeyondTheLimitDoesNotWait) {
  for (std::size_t i = 0; i < kMaxRecordings; ++i) Begin();
  const auto call = std::make_shared<RecordingCall>();
  EXPECT_TRUE(calls_.Wait(call));
  EXPECT_TRUE(absl::IsResourceExhausted(call->status)) << call->status;
}

TEST_F(RecordingCallsTest, ADeadlineEndsTheWaitForACollectorThatDoesNotCome) {
  const auto call = std::make_shared<RecordingCall>();
  call->deadline = std::chrono::steady_clock::now();
  EXPECT_FALSE(calls_.Wait(call));
  EXPECT_EQ(DueNs(), INT64_MAX) << "its place is free";
}

TEST_F(RecordingCallsTest, ACloseEndsWhatHasBegunAndRefusesTheRest) {
  const auto begun = Begin();
  Serve(0, 1'000'000);
  const auto waiting = Begin();
  calls_.Close([&](RecordingCall& call) {
    EXPECT_EQ(&call, begun.get());
    ++ended_;
  });
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  EXPECT_EQ(ended_, 1);
  EXPECT_TRUE(begun->status.ok());
  EXPECT_TRUE(absl::IsFailedPrecondition(waiting->status)) << waiting->status;
  const auto late = std::make_shared<RecordingCall>();
  EXPECT_TRUE(calls_.Wait(late));
  EXPECT_TRUE(absl::IsFailedPrecondition(late->status)) << late->status;
}

}  // namespace
}  // namespace strobe::internal
