#include "strobe/worker/shared/recording_messages.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <thread>
#include <utility>

#include "../known_value_types.h"
#include "strobe/testing/profiles.h"
#include "strobe/worker/shared/profile_bytes.h"

namespace strobe::internal {
namespace {

using testing::kKnownValueTypes;

const RecordingOptions kSecond{.duration = std::chrono::seconds(1)};
const RecordingOptions kLastSecond{.last = std::chrono::seconds(1)};
constexpr std::chrono::hours kPatience{1};

TEST(RecordingMessages, TheCallComesBackAndIsChecked) {
  const RecordingOptions options{.duration = std::chrono::milliseconds(1500),
                                 .value_types = {"wall", "cpu"},
                                 .frequency_hz = 997.5};
  const std::string text = JoinRecording({.options = options});
  const absl::StatusOr<RecordingRequest> read = SplitRecording(text);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(read->options.duration, options.duration);
  EXPECT_EQ(read->options.value_types, options.value_types);
  EXPECT_EQ(read->options.frequency_hz, options.frequency_hz);
  EXPECT_FALSE(read->dumps);
  EXPECT_TRUE(SplitRecording(JoinRecording({.options = kSecond}))->options.value_types.empty());
  EXPECT_FALSE(SplitRecording(std::string_view(text).substr(0, 31)).ok());
  EXPECT_FALSE(
      SplitRecording(JoinRecording({.options = {.duration = std::chrono::milliseconds(-1)}})).ok());
  const absl::StatusOr<RecordingRequest> dump =
      SplitRecording(JoinRecording({.options = kLastSecond, .dumps = true}));
  ASSERT_TRUE(dump.ok()) << dump.status();
  EXPECT_EQ(dump->options.last, kLastSecond.last);
  EXPECT_TRUE(dump->dumps);
}

TEST(RecordingMessages, AProfileOrAStatusComesBack) {
  absl::StatusOr<SocketPair> sockets = MakeSocketPair();
  ASSERT_TRUE(sockets.ok());
  const Profile profile = testing::SmallProfile().profile;
  ASSERT_TRUE(SendProfile(sockets->other, profile).ok());
  const absl::StatusOr<Profile> read =
      AwaitProfile(sockets->own, kSecond, kKnownValueTypes, kPatience);
  ASSERT_TRUE(read.ok()) << read.status();
  EXPECT_EQ(ProfileBytes(*read), ProfileBytes(profile));
  const absl::Status status = absl::NotFoundError("there is none");
  ASSERT_TRUE(SendProfile(sockets->other, status).ok());
  EXPECT_EQ(AwaitProfile(sockets->own, kSecond, kKnownValueTypes, kPatience).status(), status);
  sockets->other = WorkerSocket();
  EXPECT_EQ(AwaitProfile(sockets->own, kSecond, kKnownValueTypes, kPatience).status().code(),
            absl::StatusCode::kUnavailable);
}

// Memory that could still change, or none, is no profile.
TEST(RecordingMessages, OnlySealedMemoryIsRead) {
  const absl::StatusOr<SocketPair> sockets = MakeSocketPair();
  ASSERT_TRUE(sockets.ok());
  const std::string bytes = ProfileBytes(testing::SmallProfile().profile);
  const int memory = memfd_create("unsealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(write(memory, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
  for (const int descriptor : {memory, -1}) {
    Message answer{.kind = MessageKind::kRecorded};
    answer.descriptors[0] = descriptor;
    ASSERT_TRUE(sockets->other.Send(answer).ok());
    EXPECT_EQ(AwaitProfile(sockets->own, kSecond, kKnownValueTypes, kPatience).status().code(),
              absl::StatusCode::kInternal);
  }
  close(memory);
}

TEST(RecordingMessages, ACancelledCallTellsTheWorker) {
  const absl::StatusOr<SocketPair> sockets = MakeSocketPair();
  ASSERT_TRUE(sockets.ok());
  RecordingOptions options = kSecond;
  options.cancelled = std::make_shared<const std::atomic<bool>>(true);
  std::thread worker([&] {
    EXPECT_TRUE(sockets->other.Receive(-1).ok());
    EXPECT_TRUE(SendProfile(sockets->other, testing::SmallProfile().profile).ok());
  });
  EXPECT_TRUE(AwaitProfile(sockets->own, options, kKnownValueTypes, kPatience).ok());
  worker.join();
}

// A worker that is stopped answers nothing, and closes nothing.
TEST(RecordingMessages, WhatWasBeforeIsAwaitedForALimitedTimeAndNotWhenItIsCancelled) {
  const absl::StatusOr<SocketPair> sockets = MakeSocketPair();
  ASSERT_TRUE(sockets.ok());
  EXPECT_EQ(AwaitProfile(sockets->own, kLastSecond, kKnownValueTypes, std::chrono::nanoseconds(1))
                .status()
                .code(),
            absl::StatusCode::kDeadlineExceeded);
  RecordingOptions options = kLastSecond;
  options.cancelled = std::make_shared<const std::atomic<bool>>(true);
  EXPECT_EQ(AwaitProfile(sockets->own, options, kKnownValueTypes, kPatience).status().code(),
            absl::StatusCode::kCancelled);
}

}  // namespace
}  // namespace strobe::internal
