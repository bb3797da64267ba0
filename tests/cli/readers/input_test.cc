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

// What zstd makes of "first, first, first, first, ", of a million of "x", and of " end".
constexpr unsigned char kFirstFrame[] = {0x28, 0xB5, 0x2F, 0xFD, 0x04, 0x68, 0x6D, 0x00, 0x00,
                                         0x38, 0x66, 0x69, 0x72, 0x73, 0x74, 0x2C, 0x20, 0x01,
                                         0x00, 0xFA, 0x8A, 0x11, 0xF1, 0x15, 0x1F, 0x9F};
constexpr unsigned char kLongFrame[] = {0x28, 0xB5, 0x2F, 0xFD, 0x04, 0x68, 0x4C, 0x00, 0x00, 0x08,
                                        0x78, 0x01, 0x00, 0xFC, 0xFF, 0x39, 0x10, 0x02, 0x02, 0x00,
                                        0x10, 0x78, 0x02, 0x00, 0x10, 0x78, 0x02, 0x00, 0x10, 0x78,
                                        0x02, 0x00, 0x10, 0x78, 0x02, 0x00, 0x10, 0x78, 0x02, 0x00,
                                        0x10, 0x78, 0x03, 0x12, 0x0A, 0x78, 0x14, 0xDC, 0x9A, 0x6B};
constexpr unsigned char kLastFrame[] = {0x28, 0xB5, 0x2F, 0xFD, 0x04, 0x58, 0x21, 0x00, 0x00,
                                        0x20, 0x65, 0x6E, 0x64, 0x1E, 0x25, 0x76, 0x27};

class DecompressedZstdTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (AllOf(Decompressed(ReadBytes(bytes_))).status().code() == absl::StatusCode::kUnimplemented)
      GTEST_SKIP() << "no libzstd on this machine";
  }

  template <std::size_t kBytes>
  static std::string TextOf(const unsigned char (&bytes)[kBytes]) {
    return {reinterpret_cast<const char*>(bytes), kBytes};
  }
  const std::string bytes_ = TextOf(kFirstFrame) + TextOf(kLongFrame) + TextOf(kLastFrame);
  const std::string content_ =
      "first, first, first, first, " + std::string(1'000'000, 'x') + " end";
};

TEST_F(DecompressedZstdTest, ReadsAnyNumberOfFramesInAnyPieces) {
  EXPECT_EQ(*AllOf(Decompressed(ReadBytes(bytes_))), content_);
  std::vector<std::string> pieces;
  for (const char byte : bytes_) pieces.emplace_back(1, byte);
  EXPECT_EQ(*AllOf(Decompressed(Pieces(pieces))), content_);
}

TEST_F(DecompressedZstdTest, GivesALongContentPieceByPiece) {
  const ByteReader reader = Decompressed(ReadBytes(bytes_));
  while (true) {
    const absl::StatusOr<std::string_view> piece = reader();
    ASSERT_TRUE(piece.ok()) << piece.status();
    if (piece->empty()) break;
    EXPECT_LE(piece->size(), std::size_t{128} << 10);
  }
}

TEST_F(DecompressedZstdTest, RefusesWhatIsCutOffOrDamaged) {
  const std::string frame = TextOf(kLongFrame);
  for (std::size_t size = 4; size < frame.size(); ++size) {
    const absl::Status status = AllOf(Decompressed(ReadBytes(frame.substr(0, size)))).status();
    EXPECT_EQ(status.code(), absl::StatusCode::kDataLoss) << size;
    EXPECT_THAT(std::string(status.message()), HasSubstr("cut off"));
  }
  std::string damaged = frame;
  damaged.back() ^= 1;  // of the checksum
  EXPECT_THAT(std::string(AllOf(Decompressed(ReadBytes(damaged))).status().message()),
              HasSubstr("damaged"));
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
