#include "../../../src/cli/readers/read_profile.h"

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>

#include "../../../src/encode/gzip.h"
#include "../made_profile.h"
#include "../pprof_bytes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::string FormatOfBytes(const std::string& bytes) {
  const absl::StatusOr<LoadedProfile> loaded = ReadProfile(ReadBytes(bytes));
  return loaded.ok() ? loaded->format : std::string(loaded.status().message());
}

std::string EmptyPprof() {
  return PprofBytes().Strings({"", "samples", "count"}).Type(1, 2).Take();
}

TEST(ReadProfileTest, KnowsTheFormatByItsFirstBytes) {
  EXPECT_EQ(FormatOfBytes(EmptyPprof()), "pprof");
  EXPECT_EQ(FormatOfBytes("main;f 3\n"), "folded stacks");
  EXPECT_EQ(FormatOfBytes("# a comment\np 1/1 1.5: 10 cycles:\n\t12 f (/bin/p)\n"), "perf script");
}

TEST(ReadProfileTest, CommentsMayBeLong) {
  const std::string comments = "#" + std::string(20'000, 'c') + "\n" + "# more\n";
  EXPECT_EQ(FormatOfBytes(comments + "p 1/1 1.5: 10 cycles:\n\t12 f (/bin/p)\n"), "perf script");
  EXPECT_EQ(FormatOfBytes(comments + "main;f 3\n"), "folded stacks");
}

TEST(ReadProfileTest, FunctionsMayBeginWithBrackets) {
  EXPECT_EQ(FormatOfBytes("<module> (shop.py:3);pay (shop.py:9) 12\n"), "folded stacks");
  EXPECT_EQ(FormatOfBytes("<main>;pay 12\n"), "folded stacks");
  EXPECT_EQ(FormatOfBytes("{main};pay 12\n"), "folded stacks");
  EXPECT_EQ(FormatOfBytes("{closure} 1\n"), "folded stacks");
}

TEST(ReadProfileTest, KnowsTheFilesOfGperftoolsAndJemalloc) {
  EXPECT_EQ(FormatOfBytes("heap profile: 1: 8 [1: 8] @ heapprofile\n 1: 8 [1: 8] @ 0x12\n"),
            "heap profile of gperftools");
  EXPECT_EQ(FormatOfBytes("heap_v2/524288\n  t*: 1: 8 [0: 0]\n@ 0x12\n  t*: 1: 8 [0: 0]\n"),
            "heap profile of jemalloc");
  EXPECT_THAT(FormatOfBytes("goroutine profile: total 3\n"), HasSubstr("Go's text of goroutines"));
}

TEST(ReadProfileTest, ReadsWhatIsCompressed) {
  for (const std::string& bytes : {EmptyPprof(), std::string("main;f 3\n")}) {
    const absl::StatusOr<std::string> compressed = Gzip(bytes);
    ASSERT_TRUE(compressed.ok());
    EXPECT_EQ(FormatOfBytes(*compressed), FormatOfBytes(bytes));
  }
}

TEST(ReadProfileTest, SaysWhatOtherFilesAre) {
  EXPECT_THAT(FormatOfBytes(""), HasSubstr("empty"));
  EXPECT_THAT(FormatOfBytes("PERFILE2........"), HasSubstr("strobe script"));
  EXPECT_THAT(FormatOfBytes("{\"a\": 1}"), HasSubstr("JSON"));
  EXPECT_THAT(FormatOfBytes("{\n  \"version\": 5"), HasSubstr("JSON"));
  EXPECT_THAT(FormatOfBytes("<!doctype html>"), HasSubstr("HTML"));
  EXPECT_THAT(FormatOfBytes("some words\n"), HasSubstr("line 1"));
}

TEST(ReadProfileFileTest, AnErrorBeginsWithTheFilesName) {
  const std::string path =
      (std::filesystem::path(::testing::TempDir()) / "strobe_read_profile_test").string();
  const auto write = [&path](std::string_view text) {
    std::ofstream(path, std::ios::binary) << text;
  };
  write("main;f 3\n");
  const absl::StatusOr<LoadedProfile> loaded = ReadProfileFile(path, nullptr);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(RowsOf(*loaded), ElementsAre("main;f 3"));
  write("no profile");
  EXPECT_THAT(std::string(ReadProfileFile(path, nullptr).status().message()),
              StartsWith(path + ": not a profile"));
  std::filesystem::remove(path);
  const absl::Status missing = ReadProfileFile(path, nullptr).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), StartsWith(path));
}

}  // namespace
}  // namespace strobe::internal
