#include "strobe/named_profiles.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe {
namespace {

namespace fs = std::filesystem;

class NamedProfilesTest : public ::testing::Test {
 protected:
  [[nodiscard]] std::vector<std::string> Files() const {
    std::vector<std::string> files;
    if (!fs::exists(directory_)) return files;
    for (const fs::directory_entry& entry : fs::directory_iterator(directory_))
      files.push_back(entry.path().filename().string());
    return files;
  }

  const testing::TemporaryDirectory parent_;
  const fs::path directory_ = parent_.path() / "profiles";
};

// Works until the running session has a sample.
void WorkUntilSampled(BasicProfiler<NamedProfiles::Traits>& profiler) {
  const std::uint64_t before = profiler.stats().samples;
  volatile std::uint64_t sink = 0;
  while (profiler.stats().samples == before) {
    for (int i = 0; i < 1'000'000; ++i) sink = sink + 1;
  }
}

std::string Contents(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return std::string(std::istreambuf_iterator<char>(file), {});
}

TEST_F(NamedProfilesTest, ASessionBecomesAFileOfItsName) {
  NamedProfiles profiles(directory_.string(), {.sampling = {.max_overhead = 1}});
  ASSERT_TRUE(profiles.Begin().ok());
  WorkUntilSampled(profiles.profiler());
  const auto path = profiles.Keep("BM_Sort<int>/8:threads");
  ASSERT_TRUE(path.ok()) << path.status();
  EXPECT_EQ(Files(), std::vector<std::string>{"BM_Sort_int__8_threads.pb.gz"});
  const std::string first = Contents(*path);
  EXPECT_EQ(first.substr(0, 2), "\x1f\x8b");

  ASSERT_TRUE(profiles.Begin().ok());
  WorkUntilSampled(profiles.profiler());
  EXPECT_EQ(profiles.Keep("BM_Sort<int>/8:threads").value(), *path);
  EXPECT_EQ(Files().size(), 1u);
  EXPECT_NE(Contents(*path), first) << "the older file is still there";
}

TEST_F(NamedProfilesTest, ADroppedSessionLeavesNothing) {
  NamedProfiles profiles(directory_.string());
  ASSERT_TRUE(profiles.Begin().ok());
  profiles.Drop();
  EXPECT_TRUE(Files().empty());
  EXPECT_FALSE(profiles.Keep("no session").ok());
  profiles.Drop();
  EXPECT_TRUE(Files().empty());
}

TEST_F(NamedProfilesTest, NamesThatNoSystemLikesAreChanged) {
  NamedProfiles profiles(directory_.string(), {.sampling = {.max_overhead = 1}});
  for (const auto& [name, file] : {std::pair<std::string, std::string>{"", "_.pb.gz"},
                                   {"../up", "_.._up.pb.gz"},
                                   {std::string(1000, 'n'), std::string(200, 'n') + ".pb.gz"}}) {
    ASSERT_TRUE(profiles.Begin().ok());
    WorkUntilSampled(profiles.profiler());
    const auto path = profiles.Keep(name);
    ASSERT_TRUE(path.ok()) << path.status();
    EXPECT_EQ(fs::path(*path).filename().string(), file);
  }
}

TEST_F(NamedProfilesTest, AFailureIsAStatusAndTheNextSessionWorks) {
  std::ofstream(directory_) << "a file where the directory should be";
  NamedProfiles profiles(directory_.string(), {.sampling = {.max_overhead = 1}});
  ASSERT_TRUE(profiles.Begin().ok());
  WorkUntilSampled(profiles.profiler());
  EXPECT_FALSE(profiles.Keep("first").ok());
  fs::remove(directory_);
  ASSERT_TRUE(profiles.Begin().ok());
  EXPECT_FALSE(profiles.Begin().ok()) << "it runs already";
  WorkUntilSampled(profiles.profiler());
  EXPECT_TRUE(profiles.Keep("second").ok());
}

TEST_F(NamedProfilesTest, TheProgramIsToldOnce) {
  NamedProfiles profiles(directory_.string(), {.enabled = false});
  ::testing::internal::CaptureStderr();
  for (int i = 0; i < 3; ++i) profiles.WarnOnce(profiles.Begin());
  const std::string text = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(text.find("strobe: "), 0u) << text;
  EXPECT_EQ(text.find("strobe: ", 1), std::string::npos) << text;
}

}  // namespace
}  // namespace strobe
