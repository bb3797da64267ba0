#include "strobe/worker/shared/handshake.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "../send_descriptors.h"

namespace strobe::internal {
namespace {

constexpr std::int64_t kSecondNs = 1'000'000'000;

class Handshake : public ::testing::Test {
 protected:
  void SetUp() override {
    std::array<int, 2> ends{};
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends.data()), 0);
    program_ = WorkerSocket(ends[0]);
    worker_ = WorkerSocket(ends[1]);
  }

  // What the worker says to these bytes.
  absl::Status Refusal(const std::string& bytes) {
    EXPECT_EQ(send(program_.descriptor(), bytes.data(), bytes.size(), 0),
              static_cast<ssize_t>(bytes.size()));
    return worker_.Receive(kSecondNs).status();
  }

  WorkerSocket program_;
  WorkerSocket worker_;
};

std::string Bytes(const MessageHead& head, const std::string& text) {
  return std::string(reinterpret_cast<const char*>(&head), sizeof(head)) + text;
}

std::uint64_t Inode(int descriptor) {
  struct stat info {};
  return fstat(descriptor, &info) == 0 ? info.st_ino : 0;
}

TEST_F(Handshake, AMessageArrivesWithItsDescriptors) {
  const int one = memfd_create("one", MFD_CLOEXEC);
  const int two = memfd_create("two", MFD_CLOEXEC);
  ASSERT_TRUE(program_
                  .Send({.kind = MessageKind::kHello,
                         .code = 7,
                         .text = std::string("a\0b", 3),
                         .descriptors = {one, two}})
                  .ok());
  const absl::StatusOr<Message> message = worker_.Receive(kSecondNs);
  ASSERT_TRUE(message.ok()) << message.status();
  EXPECT_EQ(message->kind, MessageKind::kHello);
  EXPECT_EQ(message->code, 7U);
  EXPECT_EQ(message->text, std::string("a\0b", 3));
  EXPECT_EQ(Inode(message->descriptors[0]), Inode(one));
  EXPECT_EQ(Inode(message->descriptors[1]), Inode(two));
  for (const int descriptor : {one, two, message->descriptors[0], message->descriptors[1]})
    close(descriptor);
}

TEST_F(Handshake, AStatusComesBack) {
  const absl::Status status = absl::NotFoundError("there is none");
  ASSERT_TRUE(worker_.Send(AnswerOf(MessageKind::kFlushed, status)).ok());
  const absl::StatusOr<Message> answer = program_.Receive(kSecondNs);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(StatusOf(*answer, MessageKind::kFlushed), status);
  EXPECT_EQ(StatusOf(*answer, MessageKind::kStopped).code(), absl::StatusCode::kInternal);
}

// A flush that took longer than its caller waited.
TEST_F(Handshake, ALateAnswerIsNotTheNextCalls) {
  EXPECT_EQ(Ask(program_, MessageKind::kFlush, 1).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  const absl::StatusOr<Message> flush = worker_.Receive(kSecondNs);
  ASSERT_TRUE(flush.ok());
  const absl::Status late = absl::UnavailableError("no server");
  ASSERT_TRUE(worker_.Send(AnswerOf(MessageKind::kFlushed, late, flush->number)).ok());
  std::thread answers([&] {
    const absl::StatusOr<Message> next = worker_.Receive(kSecondNs);
    ASSERT_TRUE(next.ok());
    EXPECT_NE(next->number, flush->number);
    const Message answer = AnswerOf(MessageKind::kFlushed, absl::OkStatus(), next->number);
    EXPECT_TRUE(worker_.Send(answer).ok());
  });
  const absl::StatusOr<Message> answer = Ask(program_, MessageKind::kFlush, 60 * kSecondNs);
  answers.join();
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_TRUE(StatusOf(*answer, MessageKind::kFlushed).ok());
  EXPECT_EQ(Ask(program_, MessageKind::kFlush, 1).status().code(),
            absl::StatusCode::kDeadlineExceeded);
}

TEST_F(Handshake, WhatIsNoMessageIsRefused) {
  const MessageHead good{.kind = MessageKind::kFlush, .text_bytes = 2};
  EXPECT_TRUE(Refusal(Bytes(good, "ab")).ok());
  MessageHead other = good;
  other.magic ^= 1;
  EXPECT_EQ(Refusal(Bytes(other, "ab")).code(), absl::StatusCode::kUnimplemented);
  other = good;
  other.version = MessageHead::kVersion + 1;
  EXPECT_EQ(Refusal(Bytes(other, "ab")).code(), absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Refusal(Bytes(good, "a")).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Refusal(Bytes(good, "abc")).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Refusal("x").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Refusal(Bytes(good, std::string(Message::kMaxTextBytes + 1, 'x'))).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_FALSE(program_.Send({.text = std::string(Message::kMaxTextBytes + 1, 'x')}).ok());
}

// A peer that sends more descriptors than a message has must not use up those of this process.
TEST_F(Handshake, FurtherDescriptorsAreClosed) {
  const int next_before = dup(0);
  close(next_before);
  const int sent = memfd_create("sent", MFD_CLOEXEC);
  const MessageHead head{.kind = MessageKind::kHello};
  const std::string_view packet(reinterpret_cast<const char*>(&head), sizeof(head));
  const std::array<int, 6> descriptors{sent, sent, sent, sent, sent, sent};
  ASSERT_EQ(testing::SendDescriptors(program_.descriptor(), packet, descriptors),
            static_cast<ssize_t>(sizeof(head)));
  close(sent);
  const absl::StatusOr<Message> message = worker_.Receive(kSecondNs);
  ASSERT_TRUE(message.ok());
  for (const int descriptor : message->descriptors) close(descriptor);
  const int next_after = dup(0);
  close(next_after);
  EXPECT_EQ(next_after, next_before);
}

// A peer that reads nothing must not hold up this process.
TEST_F(Handshake, NoMessageWaitsForRoom) {
  const Message message{.kind = MessageKind::kFlush, .text = std::string(1000, 'x')};
  absl::Status status;
  for (int i = 0; i < 100'000 && status.ok(); ++i) status = program_.Send(message);
  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_TRUE(worker_.Receive(kSecondNs).ok());
  EXPECT_TRUE(program_.Send(message).ok()) << "there is room again";
}

// The system then tells of a lost connection before it gives what was sent there.
TEST_F(Handshake, ARefusalArrivesAlthoughTheOtherHasNotReadAll) {
  const absl::Status refusal = absl::ResourceExhaustedError("full");
  ASSERT_TRUE(program_.Send({.kind = MessageKind::kHello}).ok());
  ASSERT_TRUE(worker_.Send(AnswerOf(MessageKind::kWelcome, refusal)).ok());
  worker_ = WorkerSocket();
  const absl::StatusOr<Message> answer = program_.Receive(kSecondNs);
  ASSERT_TRUE(answer.ok()) << answer.status();
  EXPECT_EQ(StatusOf(*answer, MessageKind::kWelcome), refusal);
  EXPECT_EQ(program_.Receive(kSecondNs).status().code(), absl::StatusCode::kUnavailable);
}

TEST_F(Handshake, AnEmptyPacketLeavesNoDescriptorOpen) {
  const int next_before = dup(0);
  close(next_before);
  ASSERT_EQ(send(program_.descriptor(), "", 0, 0), 0);
  EXPECT_FALSE(worker_.Receive(kSecondNs).ok());
  const int next_after = dup(0);
  close(next_after);
  EXPECT_EQ(next_after, next_before);
}

TEST_F(Handshake, TheOthersEndIsNoticed) {
  EXPECT_FALSE(worker_.HasEnded());
  EXPECT_TRUE(worker_.CheckPeer().ok());
  EXPECT_EQ(worker_.Receive(1).status().code(), absl::StatusCode::kDeadlineExceeded);
  program_ = WorkerSocket();
  EXPECT_TRUE(worker_.HasEnded());
  EXPECT_EQ(worker_.Receive(-1).status().code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(worker_.Send({.kind = MessageKind::kStopped}).code(), absl::StatusCode::kUnavailable);
}

TEST(HelloText, ComesBackAndLengthsAreChecked) {
  constexpr std::array<ValueType, 2> kTypes{ValueType{"samples", "count"},
                                            ValueType{"cpu", "nanoseconds"}};
  const HelloText hello{.head = {.process_id = 4711, .tables_address = 0x7000},
                        .program = "prog",
                        .value_types = JoinValueTypes(kTypes),
                        .options = "a=b\n"};
  const std::string text = JoinHello(hello);
  const absl::StatusOr<HelloText> read = SplitHello(text);
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->head.process_id, 4711U);
  EXPECT_EQ(read->head.tables_address, 0x7000U);
  EXPECT_EQ(read->program, "prog");
  EXPECT_EQ(read->value_types, "samples count\ncpu nanoseconds\n");
  EXPECT_EQ(read->options, "a=b\n");
  EXPECT_FALSE(SplitHello(text.substr(0, sizeof(Hello) - 1)).ok());
  EXPECT_FALSE(SplitHello(text.substr(0, sizeof(Hello) + 3)).ok());
  EXPECT_FALSE(SplitHello(text.substr(0, sizeof(Hello) + 10)).ok());
}

}  // namespace
}  // namespace strobe::internal
