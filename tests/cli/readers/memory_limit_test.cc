#include "../../../src/cli/readers/memory_limit.h"

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "../../../src/cli/readers/read_profile.h"
#include "../../../src/encode/gzip.h"
#include "../pprof_bytes.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/base/sanitizers.h"

namespace strobe::internal {
namespace {

constexpr bool kHasOtherNew = kHasThreadSanitizer;
constexpr const char* kWhyNot = "clang's ThreadSanitizer brings its own operator new";

constexpr std::size_t kMiB = std::size_t{1} << 20;

absl::StatusOr<std::size_t> Hold(MemoryLimit& limit, std::size_t bytes) {
  return limit.Within([bytes]() -> absl::StatusOr<std::size_t> {
    const std::vector<char> held(bytes);
    return held.size();
  });
}

TEST(MemoryLimitTest, EachAllocationAsks) {
  if (kHasOtherNew) GTEST_SKIP() << kWhyNot;
  MemoryLimit limit(kMiB);
  for (int i = 0; i < 10; ++i)
    EXPECT_TRUE(Hold(limit, kMiB / 2).ok()) << "what is freed counts not";
  EXPECT_TRUE(absl::IsResourceExhausted(Hold(limit, 2 * kMiB).status()));
  const std::vector<char> held(kMiB / 2);
  EXPECT_TRUE(absl::IsResourceExhausted(Hold(limit, kMiB * 3 / 4).status()));
}

TEST(MemoryLimitTest, GrowsWithTheFile) {
  MemoryLimit limit(0);
  EXPECT_EQ(limit.bytes(), kLeastProfileMemory);
  limit.HasFileBytes(16 * kMiB);
  EXPECT_EQ(limit.bytes(), 16 * kMiB * kMemoryOfFileByte);
  limit.HasFileBytes(kMiB);
  EXPECT_EQ(limit.bytes(), 16 * kMiB * kMemoryOfFileByte);
  limit.HasFileBytes(~std::uint64_t{0});
  EXPECT_EQ(limit.bytes(), kMaxProfileBytes);
}

TEST(MemoryLimitTest, EndsWithTheObject) {
  { const MemoryLimit limit(kMiB); }
  const std::vector<char> held(2 * kMiB);
  EXPECT_EQ(held.size(), 2 * kMiB);
}

TEST(MemoryLimitTest, WhoAsksForMoreHasTheWholeFilesLimit) {
  MemoryLimit limit(2 * kMiB);
  limit.HasFileBytes(kMiB);
  EXPECT_EQ(limit.bytes(), 2 * kMiB);
  EXPECT_EQ(MemoryLimit(~std::size_t{0}).bytes(), kMaxProfileBytes);
}

// Files of some KiB, each of whose texts is there once, and is named by a hundred parts.
constexpr std::uint64_t kParts = 100;
std::string LongText() { return std::string(kMiB, 'A'); }
PprofBytes Begun() {
  PprofBytes bytes;
  bytes.Strings({"", "cpu", "nanoseconds", LongText()});
  return bytes;
}

std::string Functions() {
  PprofBytes bytes = Begun().Type(1, 2);
  for (std::uint64_t i = 1; i <= kParts; ++i) bytes.Function(i, 3, 3).Location(i, 0, 0, {{i, 0}});
  return bytes.Sample({1}, {5}).Take();
}
std::string Mappings() {
  PprofBytes bytes = Begun().Type(1, 2);
  for (std::uint64_t i = 1; i <= kParts; ++i) bytes.Mapping(i, i << 20, (i + 1) << 20, 0, 3, 3);
  return bytes.Take();
}
std::string Comments() {
  PprofBytes bytes = Begun().Type(1, 2);
  for (std::uint64_t i = 0; i < kParts; ++i) bytes.AddNumber(kComment, 3);
  return bytes.Take();
}
std::string Types() {
  PprofBytes bytes = Begun();
  for (std::uint64_t i = 0; i < kParts; ++i) bytes.Type(3, 3);
  return bytes.Take();
}
std::string FoldedNames() {
  std::string text;
  for (std::uint64_t i = 0; i < kParts; ++i)
    absl::StrAppend(&text, std::string(kMiB - 100, 'A'), i, " 1\n");
  return text;
}
std::string PerfNames() {
  std::string text;
  for (std::uint64_t i = 0; i < kParts; ++i)
    absl::StrAppend(&text, "p 1/1 1.5: 10 cycles:\n\t12 ", std::string(kMiB - 100, 'A'), i,
                    " (/bin/p)\n\n");
  return text;
}

TEST(MemoryLimitTest, NoFormatTakesMore) {
  if (kHasOtherNew) GTEST_SKIP() << kWhyNot;
  for (const auto& make : {Functions, Mappings, Comments, Types, FoldedNames, PerfNames}) {
    const absl::StatusOr<std::string> bytes = Gzip(make());
    ASSERT_TRUE(bytes.ok());
    const absl::StatusOr<LoadedProfile> loaded = ReadProfile(ReadBytes(*bytes), 32 * kMiB);
    EXPECT_TRUE(absl::IsResourceExhausted(loaded.status())) << loaded.status();
    EXPECT_THAT(std::string(loaded.status().message()), ::testing::HasSubstr("32 MiB"));
  }
}

TEST(MemoryLimitTest, AFileThatRepeatsItselfIsRead) {
  std::string text;
  while (text.size() < 64 * kMiB) text += "main;Parse;Next 7\n";
  const absl::StatusOr<std::string> bytes = Gzip(text);
  ASSERT_TRUE(bytes.ok());
  EXPECT_LT(bytes->size(), kMiB);
  EXPECT_TRUE(ReadProfile(ReadBytes(*bytes)).ok());
}

}  // namespace
}  // namespace strobe::internal
