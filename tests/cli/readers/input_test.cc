#include "../../../src/cli/readers/input.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "../../../src/encode/gzip.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

// Gives one piece a call; then the end, or an error.
ByteReader Pieces(std::vector<std::string> pieces, absl::Status end = absl::OkStatus()) {
  return [pieces = std::move(pieces), next = std::size_t{0},
          end]() mutable -> absl::StatusOr<std::string_view> {
    if (next < pieces.size()) return pieces[next++];
    if (!end.ok()) return end;
    return std::string_view();
  };
}

absl::StatusOr<std::string> AllOf(ByteReader reader) {
  std::string all;
  while (true) {
    const absl::StatusOr<std::string_view> bytes = reader();
    if (!bytes.ok()) return bytes.status();
    if (bytes->empty()) return all;
    all += *bytes;
  }
}

std::string Gzipped(const std::string& text) {
  absl::StatusOr<std::string> bytes = Gzip(text);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return *std::move(bytes);
}

std::vector<std::string> LinesOf(const std::string& text, std::size_t max_bytes = 100) {
  Input input(ReadBytes(text));
  std::vector<std::string> lines;
  std::string_view line;
  while (true) {
    const absl::StatusOr<bool> has_line = input.Line(line, max_bytes);
    EXPECT_TRUE(has_line.ok()) << has_line.status();
    if (!has_line.ok() || !*has_line) return lines;
    lines.emplace_back(line);
  }
}

TEST(ReadBytesTest, GivesAllOnceAndThenTheEnd) {
  ByteReader reader = ReadBytes("abc");
  EXPECT_EQ(*reader(), "abc");
  EXPECT_EQ(*reader(), "");
  EXPECT_EQ(*reader(), "");
}

TEST(DecompressedTest, WhatIsNotCompressedStaysAsItIs) {
  EXPECT_EQ(*AllOf(Decompressed(Pieces({"a", "b", "cde", "f"}))), "abcdef");
  EXPECT_EQ(*AllOf(Decompressed(Pieces({"\x1F"}))), "\x1F") << "the beginning of a sign alone";
  EXPECT_EQ(*AllOf(Decompressed(Pieces({}))), "");
}

TEST(DecompressedTest, ReadsAnyNumberOfMembersInAnyPieces) {
  const std::string long_text(1'000'000, 'x');
  const std::string bytes = Gzipped("first ") + Gzipped(long_text) + Gzipped("") + Gzipped(" end");
  const std::string expected = "first " + long_text + " end";
  EXPECT_EQ(*AllOf(Decompressed(ReadBytes(bytes))), expected);
  std::vector<std::string> pieces;
  for (const char byte : bytes) pieces.emplace_back(1, byte);
  EXPECT_EQ(*AllOf(Decompressed(Pieces(pieces))), expected);
}

TEST(DecompressedTest, RefusesGzipThatIsCutOffOrDamaged) {
  std::string bytes = Gzipped("some text that is long enough to be cut");
  for (std::size_t size = 4; size < bytes.size(); ++size) {
    const std::string part = bytes.substr(0, size);
    const absl::Status status = AllOf(Decompressed(ReadBytes(part))).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << size;
  }
  bytes[bytes.size() - 6] ^= 1;  // of the checksum
  EXPECT_EQ(AllOf(Decompressed(ReadBytes(bytes))).status().code(), absl::StatusCode::kDataLoss);
}

TEST(DecompressedTest, RefusesZstdAndSaysWhatToDo) {
  const absl::Status status = AllOf(Decompressed(ReadBytes("\x28\xB5\x2F\xFD..."))).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(status.message()), HasSubstr("zstd -d"));
}

TEST(DecompressedTest, GivesOnTheErrorsOfTheFile) {
  const absl::Status broken = absl::UnavailableError("broken");
  EXPECT_EQ(AllOf(Decompressed(Pieces({}, broken))).status(), broken);
  EXPECT_EQ(AllOf(Decompressed(Pieces({"text"}, broken))).status(), broken);
  EXPECT_EQ(AllOf(Decompressed(Pieces({Gzipped("text").substr(0, 12)}, broken))).status(), broken);
}

TEST(InputTest, FillsTheViewUpToTheEnd) {
  Input input(Pieces({"ab", "cd", "ef"}));
  ASSERT_TRUE(input.Fill(3).ok());
  EXPECT_EQ(input.view(), "abcd");
  input.Skip(3);
  ASSERT_TRUE(input.Fill(2).ok());
  EXPECT_EQ(input.view(), "def");
  ASSERT_TRUE(input.Fill(100).ok());
  EXPECT_EQ(input.view(), "def") << "no more is there";
  input.Skip(3);
  ASSERT_TRUE(input.Fill(1).ok());
  EXPECT_EQ(input.view(), "");
}

TEST(InputTest, FailsWithTheFile) {
  Input input(Pieces({"ab"}, absl::UnavailableError("broken")));
  EXPECT_TRUE(input.Fill(2).ok());
  EXPECT_EQ(input.Fill(3), absl::UnavailableError("broken"));
}

TEST(InputTest, ReadsLinesWithoutTheirEnds) {
  EXPECT_THAT(LinesOf("one\ntwo\r\n\nlast"), ElementsAre("one", "two", "", "last"));
  EXPECT_THAT(LinesOf("one\n"), ElementsAre("one"));
  EXPECT_THAT(LinesOf("\n"), ElementsAre(""));
  EXPECT_THAT(LinesOf(""), IsEmpty());
}

TEST(InputTest, JoinsALineThatComesInPieces) {
  Input input(Pieces({"o", "n", "e\nt", "wo"}));
  std::string_view line;
  ASSERT_TRUE(*input.Line(line, 10));
  EXPECT_EQ(line, "one");
  ASSERT_TRUE(*input.Line(line, 10));
  EXPECT_EQ(line, "two");
  EXPECT_FALSE(*input.Line(line, 10));
}

TEST(InputTest, RefusesALineThatIsTooLong) {
  EXPECT_THAT(LinesOf("12345\n12345", 5), ElementsAre("12345", "12345"));
  for (const char* text : {"123456\n", "123456"}) {
    Input input(ReadBytes(text));
    std::string_view line;
    EXPECT_EQ(input.Line(line, 5).status().code(), absl::StatusCode::kInvalidArgument) << text;
  }
}

TEST(OpenFileTest, ReadsAFileAndSaysHowFarItIs) {
  const std::string path =
      (std::filesystem::path(::testing::TempDir()) / "strobe_input_test_\u00B5").string();
  const std::u8string name(path.begin(), path.end());
  const std::string text(700'000, 'x');
  std::ofstream(std::filesystem::path(name), std::ios::binary) << text;
  std::uint64_t progress = 0;
  absl::StatusOr<ByteReader> reader =
      OpenFile(path, [&](std::uint64_t bytes) { progress = bytes; });
  ASSERT_TRUE(reader.ok()) << reader.status();
  EXPECT_EQ(*AllOf(*std::move(reader)), text);
  EXPECT_EQ(progress, text.size());
  std::filesystem::remove(std::filesystem::path(name));
}

TEST(OpenFileTest, SaysWhyItCannot) {
  const std::string directory = ::testing::TempDir();
  EXPECT_EQ(OpenFile(directory, nullptr).status().code(), absl::StatusCode::kInvalidArgument);
  const absl::Status missing = OpenFile(directory + "/strobe_no_such_file", nullptr).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(missing.message()), HasSubstr("strobe_no_such_file"));
}

}  // namespace
}  // namespace strobe::internal
