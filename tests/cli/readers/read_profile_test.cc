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
