#include "../../../src/cli/perf/perf_threads.h"

#include <cstdint>
#include <string>

#include "../perf_bytes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "process/fake_image.h"

namespace strobe::internal {
namespace {

using ::testing::SizeIs;

constexpr std::uint16_t kExecBit = 1 << 13;

class PerfThreadsTest : public ::testing::Test {
 protected:
  void Take(PerfRecordType type, const Bytes& body, std::uint16_t misc = 0) {
    threads_.Take(RecordOf(type, body, misc));
  }
  void MapCode(std::uint32_t process) { table_.Map(process, {0x1000, 0x2000, 0, "//anon"}); }
  const LabelSet& LabelsOf(std::uint32_t process, std::uint32_t thread) {
    return builder_.profile().label_sets[threads_.LabelsOf(process, thread)];
  }

  testing::FakeFiles files_;
  ProcessTable table_{files_};
  ProfileBuilder builder_;
  PerfThreads threads_{builder_, table_};
};

TEST_F(PerfThreadsTest, AThreadsLabelsAreItsIdItsNameAndItsProcess) {
  Take(PerfRecordType::kComm, NameBody(42, 43, "worker"));
  EXPECT_EQ(LabelsOf(42, 43).Number(kThreadIdLabel), 43);
  EXPECT_EQ(LabelsOf(42, 43).Text(kThreadNameLabel), "worker");
  EXPECT_EQ(LabelsOf(42, 43).Number(PerfThreads::kProcessLabel), 42);
  EXPECT_EQ(LabelsOf(42, 44).Text(kThreadNameLabel), "") << "without a record it has no name";
  EXPECT_EQ(threads_.LabelsOf(42, 43), threads_.LabelsOf(42, 43));
}

TEST_F(PerfThreadsTest, ANewNameIsThatOfLaterSamples) {
  Take(PerfRecordType::kComm, NameBody(42, 42, "before"));
  const std::uint32_t before = threads_.LabelsOf(42, 42);
  Take(PerfRecordType::kComm, NameBody(42, 42, "after"));
  EXPECT_NE(threads_.LabelsOf(42, 42), before);
  EXPECT_EQ(LabelsOf(42, 42).Text(kThreadNameLabel), "after");
  EXPECT_EQ(builder_.profile().label_sets[before].Text(kThreadNameLabel), "before");
  EXPECT_EQ(table_.Name(42), "after") << "the first thread names the process";
}

TEST_F(PerfThreadsTest, AForkedThreadHasItsParentsName) {
  Take(PerfRecordType::kComm, NameBody(42, 42, "parent"));
  Take(PerfRecordType::kFork, ForkBody(42, 42, 43, 42));
  EXPECT_EQ(LabelsOf(42, 43).Text(kThreadNameLabel), "parent");
}

TEST_F(PerfThreadsTest, AForkedProcessHasItsParentsCode) {
  MapCode(42);
  Take(PerfRecordType::kFork, ForkBody(50, 42, 50, 42));
  ASSERT_NE(table_.Find(50), nullptr);
  EXPECT_THAT(table_.Find(50)->modules(), SizeIs(1));
  Take(PerfRecordType::kFork, ForkBody(60, 42, 60, 42), 1 << 13);
  EXPECT_EQ(table_.Find(60), nullptr) << "perf says itself what this one has mapped";
}

TEST_F(PerfThreadsTest, AnExecutedProgramHasNoCodeOfThatBefore) {
  MapCode(42);
  Take(PerfRecordType::kComm, NameBody(42, 42, "renamed"));
  EXPECT_THAT(table_.Find(42)->modules(), SizeIs(1));
  Take(PerfRecordType::kComm, NameBody(42, 42, "executed"), kExecBit);
  EXPECT_THAT(table_.Find(42)->modules(), SizeIs(0));
  EXPECT_EQ(table_.Name(42), "executed");
}

TEST_F(PerfThreadsTest, AProcessEndsWithItsLastThread) {
  MapCode(42);
  Take(PerfRecordType::kComm, NameBody(42, 42, "main"));
  Take(PerfRecordType::kFork, ForkBody(42, 42, 43, 42));
  Take(PerfRecordType::kExit, ForkBody(42, 1, 42, 42));
  EXPECT_NE(table_.Find(42), nullptr);
  Take(PerfRecordType::kExit, ForkBody(42, 1, 42, 42));  // said twice
  Take(PerfRecordType::kExit, ForkBody(42, 1, 99, 42));  // of a thread that nothing says
  EXPECT_NE(table_.Find(42), nullptr);
  Take(PerfRecordType::kExit, ForkBody(42, 1, 43, 42));
  EXPECT_EQ(table_.Find(42), nullptr);
}

TEST_F(PerfThreadsTest, AProcessIsCalledWhatWasExecuted) {
  Take(PerfRecordType::kComm, NameBody(42, 42, "program"), kExecBit);
  Take(PerfRecordType::kFork, ForkBody(42, 42, 43, 42));
  Take(PerfRecordType::kComm, NameBody(42, 42, "main loop"));
  Take(PerfRecordType::kComm, NameBody(42, 43, "worker"));
  EXPECT_EQ(LabelsOf(42, 42).Text(PerfThreads::kProcessNameLabel), "program");
  EXPECT_EQ(LabelsOf(42, 42).Text(kThreadNameLabel), "main loop");
  EXPECT_EQ(LabelsOf(42, 43).Text(PerfThreads::kProcessNameLabel), "program");
  Take(PerfRecordType::kFork, ForkBody(50, 42, 50, 43));
  Take(PerfRecordType::kComm, NameBody(50, 50, "child"));
  EXPECT_EQ(LabelsOf(50, 50).Text(PerfThreads::kProcessNameLabel), "program");
  Take(PerfRecordType::kComm, NameBody(50, 50, "other"), kExecBit);
  EXPECT_EQ(LabelsOf(50, 50).Text(PerfThreads::kProcessNameLabel), "other");
}

TEST_F(PerfThreadsTest, AProcessThatPerfSaysWasThereIsCalledWhatItsFirstThreadIs) {
  Take(PerfRecordType::kComm, NameBody(1, 1, "init"));
  Take(PerfRecordType::kFork, ForkBody(42, 1, 42, 1), 1 << 13);
  Take(PerfRecordType::kComm, NameBody(42, 42, "server"));
  Take(PerfRecordType::kComm, NameBody(42, 43, "worker"));
  EXPECT_EQ(LabelsOf(42, 43).Text(PerfThreads::kProcessNameLabel), "server");
}

TEST_F(PerfThreadsTest, AThreadThatHasEndedIsNotAlive) {
  EXPECT_TRUE(threads_.IsAlive(42)) << "nothing says that it has ended";
  EXPECT_FALSE(threads_.IsAlive(0xFFFFFFFF)) << "it is on no list";
  Take(PerfRecordType::kComm, NameBody(42, 42, "main"));
  EXPECT_TRUE(threads_.IsAlive(42));
  Take(PerfRecordType::kExit, ForkBody(42, 1, 42, 42));
  EXPECT_FALSE(threads_.IsAlive(42));
  EXPECT_EQ(LabelsOf(42, 42).Text(PerfThreads::kProcessNameLabel), "main") << "late samples";
}

TEST_F(PerfThreadsTest, WhatIsLeftOutEndsWithTheProcess) {
  Take(PerfRecordType::kComm, NameBody(42, 42, "main"));
  threads_.LeaveOut(42);
  EXPECT_TRUE(threads_.IsLeftOut(42));
  Take(PerfRecordType::kExit, ForkBody(42, 1, 42, 42));
  EXPECT_FALSE(threads_.IsLeftOut(42)) << "another process may get the id";
}

TEST_F(PerfThreadsTest, AThreadThatExecutesGetsTheIdOfItsProcess) {
  MapCode(42);
  Take(PerfRecordType::kComm, NameBody(42, 42, "main"));
  Take(PerfRecordType::kFork, ForkBody(42, 42, 43, 42));
  Take(PerfRecordType::kExit, ForkBody(42, 1, 42, 42));
  Take(PerfRecordType::kComm, NameBody(42, 42, "next"), kExecBit);
  EXPECT_FALSE(threads_.IsAlive(43));
  EXPECT_TRUE(threads_.IsAlive(42));
  MapCode(42);
  Take(PerfRecordType::kExit, ForkBody(42, 1, 42, 42));
  EXPECT_EQ(table_.Find(42), nullptr) << "it was the last thread";
}

TEST_F(PerfThreadsTest, EachLossOfRecordsPutsAProcessIntoDoubt) {
  Take(PerfRecordType::kComm, NameBody(42, 42, "main"));
  EXPECT_FALSE(threads_.TakeDoubt(42));
  threads_.NoteLoss();
  EXPECT_TRUE(threads_.TakeDoubt(42));
  EXPECT_FALSE(threads_.TakeDoubt(42));
  threads_.NoteLoss();
  Take(PerfRecordType::kComm, NameBody(42, 42, "next"), kExecBit);
  EXPECT_FALSE(threads_.TakeDoubt(42)) << "what it has mapped comes behind that";
}

TEST_F(PerfThreadsTest, EachRowOfAMachineSaysItsProcess) {
  threads_.UseMachine();
  Take(PerfRecordType::kComm, NameBody(42, 42, "one"), kExecBit);
  threads_.LabelsOf(42, 42);
  threads_.Finish();
  EXPECT_EQ(LabelsOf(42, 42).Number(PerfThreads::kProcessLabel), 42);
  EXPECT_EQ(LabelsOf(42, 42).Text(PerfThreads::kProcessNameLabel), "one");
  EXPECT_EQ(LabelsOf(0, 0).Text(PerfThreads::kProcessNameLabel), PerfThreads::kOutsideName);
  EXPECT_EQ(LabelsOf(~0u, ~0u).Text(PerfThreads::kProcessNameLabel), PerfThreads::kEndedName);
  EXPECT_EQ(LabelsOf(~0u, ~0u).Number(kThreadIdLabel), -1);
  EXPECT_EQ(LabelsOf(77, 77).Text(PerfThreads::kProcessNameLabel), PerfThreads::kEndedName)
      << "it had ended before it was looked for in /proc";
}

TEST_F(PerfThreadsTest, OneProcessOfTwoProgramsNeedsTheirNames) {
  Take(PerfRecordType::kComm, NameBody(42, 42, "sh"), kExecBit);
  const std::uint32_t before = threads_.LabelsOf(42, 42);
  Take(PerfRecordType::kComm, NameBody(42, 42, "program"), kExecBit);
  threads_.LabelsOf(42, 42);
  threads_.Finish();
  EXPECT_EQ(builder_.profile().label_sets[before].Text(PerfThreads::kProcessNameLabel), "sh");
  EXPECT_EQ(LabelsOf(42, 42).Text(PerfThreads::kProcessNameLabel), "program");
}

TEST_F(PerfThreadsTest, LeavesOutRecordsThatAreCutOff) {
  MapCode(42);
  Take(PerfRecordType::kComm, HalfWord(42), kExecBit);
  Take(PerfRecordType::kFork, Join({HalfWord(50), HalfWord(42), HalfWord(50)}));
  Take(PerfRecordType::kExit, Join({HalfWord(42), HalfWord(42)}));
  EXPECT_THAT(table_.Find(42)->modules(), SizeIs(1));
  EXPECT_EQ(table_.Find(50), nullptr);
}

TEST_F(PerfThreadsTest, APeriodForgetsWhatHasEnded) {
  Take(PerfRecordType::kComm, NameBody(42, 42, "lives"), kExecBit);
  Take(PerfRecordType::kComm, NameBody(50, 50, "ends"), kExecBit);
  Take(PerfRecordType::kExit, ForkBody(50, 1, 50, 42));
  EXPECT_EQ(LabelsOf(50, 50).Text(kThreadNameLabel), "ends");
  threads_.BeginPeriod();
  EXPECT_EQ(LabelsOf(50, 50).Text(kThreadNameLabel), "");
  EXPECT_EQ(LabelsOf(42, 42).Text(PerfThreads::kProcessNameLabel), "lives");
}

TEST_F(PerfThreadsTest, OneProcessNeedsNoLabel) {
  threads_.LabelsOf(42, 42);
  threads_.LabelsOf(42, 43);
  threads_.Finish();
  for (const LabelSet& set : builder_.profile().label_sets) {
    EXPECT_EQ(set.Number(PerfThreads::kProcessLabel), 0);
    EXPECT_NE(set.Number(kThreadIdLabel), 0);
  }
}

TEST_F(PerfThreadsTest, SeveralProcessesHaveOneEach) {
  threads_.LabelsOf(42, 42);
  threads_.LabelsOf(50, 50);
  threads_.Finish();
  EXPECT_EQ(LabelsOf(42, 42).Number(PerfThreads::kProcessLabel), 42);
  EXPECT_EQ(LabelsOf(50, 50).Number(PerfThreads::kProcessLabel), 50);
}

}  // namespace
}  // namespace strobe::internal
