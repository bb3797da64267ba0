#include "../../src/examples/quickstart_workload.h"

#include <thread>

#include "gtest/gtest.h"

namespace {

using std::chrono::steady_clock;

Deadline Soon() { return steady_clock::now() + std::chrono::milliseconds(1); }

TEST(RoundQueueTest, HandsRoundsOnInOrder) {
  RoundQueue rounds;
  rounds.Post({.worker = "a", .bytes = 1});
  std::thread([&] { rounds.Post({.worker = "b", .bytes = 2}); }).join();
  const Deadline passed = steady_clock::now();
  EXPECT_EQ(rounds.WaitUntil(passed)->worker, "a") << "what is there needs no time";
  EXPECT_EQ(rounds.WaitUntil(passed)->bytes, 2);
  EXPECT_FALSE(rounds.WaitUntil(passed).has_value());
}

TEST(RoundQueueTest, ARoundEndsAWait) {
  RoundQueue rounds;
  std::thread poster([&] { rounds.Post({.worker = "a"}); });
  EXPECT_TRUE(rounds.WaitUntil(Deadline::max()).has_value());
  poster.join();
}

TEST(QuickstartWorkloadTest, FilesAreLimited) {
  constexpr std::size_t kMost = 100'000;
  std::size_t bytes = 0;
  for (const InputFile& file : ReadMappedFiles(kMost)) {
    EXPECT_FALSE(file.bytes.empty()) << file.path;
    bytes += file.bytes.size();
  }
  EXPECT_GT(bytes, 0u) << "the program itself is mapped";
  EXPECT_LE(bytes, kMost);
}

TEST(QuickstartWorkloadTest, EachWorkerSaysWhatItDid) {
  const std::vector<InputFile> files = {{"/a", "one two two\nthree_3\n"}, {"/b", "one\n"}};
  RoundQueue rounds;
  EXPECT_NE(RunDatabase(files, Soon(), rounds).find("lines of files into SQLite"),
            std::string::npos);
  EXPECT_NE(RunCompression(files, Soon(), rounds).find("deflated"), std::string::npos);
  EXPECT_NE(RunWordCount(files, Soon(), rounds).find("3 distinct"), std::string::npos);
  EXPECT_NE(RunBookkeeping(Soon(), rounds).find("waited for rounds:"), std::string::npos);
}

TEST(QuickstartWorkloadTest, AfterTheDeadlineNothingIsDone) {
  RoundQueue rounds;
  RunWordCount({{"/a", "one"}}, steady_clock::now() - std::chrono::seconds(1), rounds);
  EXPECT_FALSE(rounds.WaitUntil(steady_clock::now()).has_value());
}

}  // namespace
