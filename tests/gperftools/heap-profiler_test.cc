#include "strobe/gperftools/heap-profiler.h"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "../../src/gperftools/heap_profile.h"
#include "../../src/gperftools/heap_text.h"
#include "gmock/gmock.h"
#include "platform/test_system.h"
#include "read_profile.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

constexpr std::int64_t kMegabyte = 1 << 20;
// A megabyte in few blocks, so that their samples find room where the collector gets no turn
// meanwhile.
constexpr std::int64_t kBlockBytes = 16 << 10;
using Blocks = std::array<std::unique_ptr<char[]>, kMegabyte / kBlockBytes>;

[[gnu::noinline]] void AllocateKept(Blocks& blocks) {
  for (auto& block : blocks) block.reset(new char[kBlockBytes]);
}
[[gnu::noinline]] void AllocateFreed() {
  Blocks blocks;
  for (auto& block : blocks) block.reset(new char[kBlockBytes]);
}

// A thread's first sample is one of the interval that was in force before, of 512 KiB in the mean.
void TakeFirstSample() {
  char* volatile block = new char[32 * kMegabyte];
  delete[] block;
}

class HeapProfilerTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directories(directory_);
    Set("TCMALLOC_SAMPLE_PARAMETER", "1");  // each allocation
  }
  void TearDown() override {
    HeapProfilerStop();
    for (const std::string& name : set_) UnsetVariable(name.c_str());
    std::filesystem::remove_all(directory_);
  }
  void Set(const char* name, const std::string& value) {
    SetVariable(name, value);
    set_.insert(name);
  }
  // The files of the profile, in their order.
  [[nodiscard]] std::vector<std::filesystem::path> Files() const {
    std::vector<std::filesystem::path> files;
    for (const auto& file : std::filesystem::directory_iterator(directory_)) {
      if (file.path().extension() == ".heap") files.push_back(file.path());
    }
    std::ranges::sort(files);
    return files;
  }
  // Runs that test of this program. Returns what it has written to standard error.
  std::string Run(const std::string& name) {
    EXPECT_EQ(RunThisProgram({"--gtest_also_run_disabled_tests",
                              "--gtest_filter=HeapVariablesProgram.DISABLED_" + name},
                             directory_),
              0)
        << BytesOf(directory_ / "output");
    return BytesOf(directory_ / "errors");
  }

  const std::filesystem::path directory_ = std::filesystem::path(::testing::TempDir()) /
                                           ("strobe_gperftools_heap_" + std::to_string(getpid()));
  const std::filesystem::path prefix_ = directory_ / "heap";

 private:
  std::set<std::string> set_;
};

TEST_F(HeapProfilerTest, AFileHasWhatIsLiveAndAllThatWasAllocated) {
  EXPECT_EQ(IsHeapProfilerRunning(), 0);
  HeapProfilerDump("nothing is under way");
  HeapProfilerStart(prefix_.c_str());
  ASSERT_EQ(IsHeapProfilerRunning(), 1);
  TakeFirstSample();
  Blocks blocks;
  AllocateKept(blocks);
  AllocateFreed();
  ::testing::internal::CaptureStderr();
  HeapProfilerDump("one");
  const std::string first = prefix_.string() + ".0001.heap";
  EXPECT_EQ(::testing::internal::GetCapturedStderr(),
            "strobe: dumping heap profile to " + first + " (one)\n");
  EXPECT_EQ(AmountOf(ProfileAt(first), "AllocateKept", "inuse_space"), kMegabyte);
  EXPECT_EQ(AmountOf(ProfileAt(first), "AllocateKept", "inuse_objects"), kMegabyte / kBlockBytes);
  EXPECT_EQ(AmountOf(ProfileAt(first), "AllocateFreed", "inuse_space"), 0);
  EXPECT_GE(AmountOf(ProfileAt(first), "AllocateFreed", "alloc_space"), kMegabyte);
  EXPECT_EQ(AmountOf(ProfileAt(first), "HeapProfile::Record", "alloc_space"), 0);
  EXPECT_EQ(ProfileAt(first).default_sample_type, "inuse_space");
  blocks = {};
  HeapProfilerDump("two");
  const PprofProfile second = ProfileAt(prefix_.string() + ".0002.heap");
  EXPECT_EQ(AmountOf(second, "AllocateKept", "inuse_space"), 0);
  EXPECT_GE(AmountOf(second, "AllocateKept", "alloc_space"), kMegabyte) << "since the start";
  HeapProfilerStop();
  EXPECT_EQ(IsHeapProfilerRunning(), 0);
  EXPECT_EQ(Files().size(), 2U);
}

TEST_F(HeapProfilerTest, TheTextIsThatOfTheOlderFormat) {
  const std::unique_ptr<char, void (*)(void*)> none(GetHeapProfile(), &std::free);
  EXPECT_STREQ(none.get(), "");
  HeapProfilerStart(prefix_.c_str());
  TakeFirstSample();
  Blocks blocks;
  AllocateKept(blocks);
  const std::unique_ptr<char, void (*)(void*)> text(GetHeapProfile(), &std::free);
  // Without the table of mappings, which is long.
  ASSERT_NE(std::strstr(text.get(), "\nMAPPED_LIBRARIES:\n"), nullptr);
  const std::string rows(text.get(), std::strstr(text.get(), "\nMAPPED_LIBRARIES:\n"));
  EXPECT_THAT(rows, StartsWith("heap profile: "));
  EXPECT_THAT(rows, HasSubstr("\n64: 1048576 [64: 1048576] @ 0x"));
  EXPECT_TRUE(Files().empty());
}

TEST(HeapTextTest, HasARowForEachStack) {
  Profile profile;
  profile.value_types = {{"alloc_objects", "count"}, {"alloc_space", "bytes"},
                         {"peak_objects", "count"},  {"peak_space", "bytes"},
                         {"inuse_objects", "count"}, {"inuse_space", "bytes"}};
  ProfileBuilder builder(profile);
  builder.AddThread(1, "main");
  const std::uint32_t root = builder.AddFrame(0x10, Frame::kNoModule);
  const std::uint32_t leaf = builder.AddFrame(0x1f, Frame::kNoModule);
  builder.AddSample(0, {root, leaf}, {4, 400, 2, 200, 1, 100});
  builder.AddSample(0, {builder.AddPseudoFrame(PseudoFrame::kTruncated), leaf}, {1, 7, 1, 7, 1, 7});
  builder.AddSample(0, {root}, {0, 0, 5, 500, 0, 0});
  EXPECT_EQ(internal::HeapText(profile, "maps\n"),
            "heap profile: 2: 107 [5: 407] @ heapprofile\n"
            "1: 100 [4: 400] @ 0x20 0x11\n"
            "1: 7 [1: 7] @ 0x20\n"
            "\nMAPPED_LIBRARIES:\nmaps\n");
}

TEST(HeapIntervalsTest, AFileIsDueByEachOfThem) {
  const internal::HeapIntervals all{
      .allocated_bytes = 100 * kMegabyte, .in_use_bytes = 10 * kMegabyte, .time_s = 60};
  const internal::HeapAmounts last{
      .allocated_bytes = 50 * kMegabyte, .in_use_bytes = 5 * kMegabyte, .time_s = 1000};
  internal::HeapAmounts now = last;
  EXPECT_EQ(DueReason(all, now, last), std::nullopt);
  now.time_s += 60;
  EXPECT_EQ(DueReason(all, now, last), "60 sec since the last dump");
  now.in_use_bytes = 15 * kMegabyte + 1;
  EXPECT_EQ(DueReason(all, now, last), "15 MB currently in use");
  now.allocated_bytes = 150 * kMegabyte;
  EXPECT_EQ(DueReason(all, now, last), "150 MB allocated cumulatively, 15 MB currently in use");
  EXPECT_EQ(DueReason({.allocated_bytes = 0, .in_use_bytes = 0, .time_s = 0}, now, {}),
            std::nullopt);
}

// What the programs below run: the variables are all that asks for a profile.
TEST(HeapVariablesProgram, DISABLED_Works) {
  ASSERT_EQ(IsHeapProfilerRunning(), 1);
  TakeFirstSample();
  static auto* const blocks = new Blocks;  // live at the exit
  AllocateKept(*blocks);
}
TEST(HeapVariablesProgram, DISABLED_IsWatched) {
  const std::string first = std::string(std::getenv("HEAPPROFILE")) + ".0001.heap";
  if (const char* const signal = std::getenv("HEAPPROFILESIGNAL")) kill(getpid(), atoi(signal));
  while (!std::filesystem::exists(first) || std::filesystem::file_size(first) == 0) AllocateFreed();
}

TEST_F(HeapProfilerTest, HeapprofileIsWrittenAtTheExit) {
  Set("HEAPPROFILE", prefix_);
  EXPECT_THAT(Run("Works"), HasSubstr(prefix_.string() + ".0001.heap (Exiting, 1 MB in use)"));
  ASSERT_EQ(Files().size(), 1U);
  EXPECT_EQ(AmountOf(ProfileAt(Files()[0]), "AllocateKept", "inuse_space"), kMegabyte);
}

TEST_F(HeapProfilerTest, AnIntervalOfAllocatedBytesWritesFiles) {
  Set("HEAPPROFILE", prefix_);
  Set("HEAP_PROFILE_ALLOCATION_INTERVAL", std::to_string(2 * kMegabyte));
  EXPECT_THAT(Run("IsWatched"), HasSubstr(" MB allocated cumulatively, "));
  EXPECT_GE(Files().size(), 2U);
}

TEST_F(HeapProfilerTest, ASignalWritesAFile) {
  Set("HEAPPROFILE", prefix_);
  Set("HEAPPROFILESIGNAL", std::to_string(SIGUSR2));
  Set("HEAP_PROFILE_ALLOCATION_INTERVAL", "0");  // the program may allocate 1 GB before
  EXPECT_THAT(Run("IsWatched"), HasSubstr(".0001.heap (signal)"));
}

TEST_F(HeapProfilerTest, AnIntervalOfTimeWritesFiles) {
  Set("HEAPPROFILE", prefix_);
  Set("HEAP_PROFILE_TIME_INTERVAL", "1");
  Set("HEAP_PROFILE_ALLOCATION_INTERVAL", "0");  // the program may allocate 1 GB before
  EXPECT_THAT(Run("IsWatched"), HasSubstr(" sec since the last dump)"));
}

TEST_F(HeapProfilerTest, AFileThatCannotBeWrittenIsALine) {
  HeapProfilerStart((directory_ / "none/heap").c_str());
  ::testing::internal::CaptureStderr();
  HeapProfilerDump("why");
  EXPECT_THAT(::testing::internal::GetCapturedStderr(), HasSubstr("No such file or directory"));
}

}  // namespace
}  // namespace strobe::testing
