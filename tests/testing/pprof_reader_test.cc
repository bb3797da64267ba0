#include "strobe/testing/pprof_reader.h"

#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace strobe::testing {
namespace {

// Written by hand after profile.proto: one sample type cpu/ns, one sample of location 1 and value
// 150, one location at address 16 in function "f" of file "cpu", which begins at line 5, at line 7
// and column 9; comment "hello".
std::string HandWritten() {
  const auto field = [](char tag, const std::string& bytes) {
    return std::string{tag, static_cast<char>(bytes.size())} + bytes;
  };
  return field(0x0A, {0x08, 0x01, 0x10, 0x02}) +
         field(0x12, {0x0A, 0x01, 0x01, 0x12, 0x02, '\x96', 0x01}) +
         field(0x22, {0x08, 0x01, 0x18, 0x10, 0x22, 0x06, 0x08, 0x01, 0x10, 0x07, 0x18, 0x09}) +
         field(0x1A, {0x08, 0x01, 0x38, 0x01, 0x40, 0x01, 0x48, 0x01, 0x50, 0x01}) +
         field(0x2A, {0x08, 0x01, 0x10, 0x03, 0x20, 0x01, 0x28, 0x05}) + field(0x32, "") +
         field(0x32, "cpu") + field(0x32, "ns") + field(0x32, "f") + field(0x32, "hello") +
         field(0x6A, {0x04});
}

TEST(PprofReaderTest, ReadsAMessageWrittenByHand) {
  const auto profile = ReadPprof(HandWritten());
  ASSERT_TRUE(profile.has_value());
  EXPECT_EQ(CheckPprof(*profile), "");
  EXPECT_EQ(profile->sample_types, (std::vector<PprofProfile::ValueType>{{"cpu", "ns"}}));
  ASSERT_EQ(profile->samples.size(), 1U);
  EXPECT_EQ(profile->samples[0].values, std::vector<std::int64_t>{150});
  EXPECT_EQ(profile->Stack(profile->samples[0]), std::vector<std::string>{"f"});
  EXPECT_EQ(profile->locations[0].address, 16U);
  ASSERT_EQ(profile->locations[0].lines.size(), 1U);
  EXPECT_EQ(profile->locations[0].lines[0].line, 7);
  EXPECT_EQ(profile->locations[0].lines[0].column, 9);
  EXPECT_EQ(profile->functions[0].filename, "cpu");
  EXPECT_EQ(profile->functions[0].start_line, 5);
  ASSERT_EQ(profile->mappings.size(), 1U);
  EXPECT_TRUE(profile->mappings[0].has_functions && profile->mappings[0].has_filenames);
  EXPECT_TRUE(profile->mappings[0].has_line_numbers && profile->mappings[0].has_inline_frames);
  EXPECT_EQ(profile->comments, std::vector<std::string>{"hello"});
}

TEST(PprofReaderTest, RefusesWhatIsDamaged) {
  const std::string whole = HandWritten();
  EXPECT_FALSE(ReadPprof("").has_value());
  EXPECT_FALSE(ReadPprof("no profile at all").has_value());
  EXPECT_FALSE(ReadPprof(whole.substr(0, whole.size() - 1)).has_value());
  EXPECT_FALSE(ReadPprof("\x1F\x8B\x08 and nothing of gzip").has_value());
}

}  // namespace
}  // namespace strobe::testing
