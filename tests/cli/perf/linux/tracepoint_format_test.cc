#include "../../../../src/cli/perf/linux/tracepoint_format.h"

#include <cstddef>
#include <string>
#include <string_view>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kFormat =
    "name: made_up\n"
    "ID: 314\n"
    "format:\n"
    "\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n"
    "\tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n"
    "\n"
    "\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
    "\tfield:const void * ptr;\toffset:24;\tsize:8;\tsigned:0;\n"
    "\tfield:size_t bytes;\toffset:32;\tsize:8;\tsigned:0;\n"
    "\tfield:long long delta;\toffset:40;\tsize:8;\tsigned:1;\n"
    "\tfield:short level;\toffset:48;\tsize:2;\tsigned:1;\n"
    "\tfield:unsigned char flag;\toffset:50;\tsize:1;\tsigned:0;\n"
    "\tfield:__data_loc char[] text;\toffset:52;\tsize:4;\tsigned:0;\n"
    "\tfield:struct odd pair;\toffset:56;\tsize:12;\tsigned:0;\n"
    "\n"
    "print fmt: \"field:int bytes;\", REC->bytes\n";

std::string ErrorOf(std::string_view format, std::string_view name) {
  return std::string(ParseTracepointField(format, name).status().message());
}

TEST(TracepointFormat, SaysWhereAFieldIs) {
  const auto field = [](std::string_view name) {
    const auto found = ParseTracepointField(kFormat, name);
    EXPECT_TRUE(found.ok()) << found.status();
    return found.value_or(TracepointField());
  };
  EXPECT_EQ(field("bytes"), (TracepointField{32, 8, false}));
  EXPECT_EQ(field("delta"), (TracepointField{40, 8, true}));
  EXPECT_EQ(field("level"), (TracepointField{48, 2, true}));
  EXPECT_EQ(field("flag"), (TracepointField{50, 1, false}));
  EXPECT_EQ(field("common_pid"), (TracepointField{4, 4, true}));
}

TEST(TracepointFormat, RefusesWhatIsNoNumber) {
  for (const char* const name : {"comm", "ptr", "text", "pair"})
    EXPECT_THAT(ErrorOf(kFormat, name), HasSubstr("is no number")) << name;
}

TEST(TracepointFormat, NamesTheFieldsThatThereAre) {
  const std::string error = ErrorOf(kFormat, "byte");
  EXPECT_THAT(error, HasSubstr("no field byte: expected bytes, delta, level, flag"));
  EXPECT_THAT(error, Not(HasSubstr("comm")));
}

TEST(TracepointFormat, ReadsWhatIsBroken) {
  for (std::size_t bytes = 0; bytes < kFormat.size(); ++bytes) {
    const auto found = ParseTracepointField(kFormat.substr(0, bytes), "bytes");
    EXPECT_TRUE(!found.ok() || *found == (TracepointField{32, 8, false})) << bytes;
  }
  for (const char* const line :
       {"\tfield:;\toffset:8;\tsize:8;\tsigned:0;",
        "\tfield:int a;\toffset:-8;\tsize:4;\tsigned:0;",
        "\tfield:int a;\toffset:99999999;\tsize:4;\tsigned:0;",
        "\tfield:int a;\toffset:8;\tsize:4294967297;\tsigned:0;",
        "\tfield:int a;\toffset:8;\tsigned:0;", "field:int a offset:8; size:4; signed:0"})
    EXPECT_THAT(ErrorOf(line, "a"), HasSubstr("no field a")) << line;
  const std::string late = std::string(kMaxFormatBytes, '\n') + std::string(kFormat);
  EXPECT_THAT(ErrorOf(late, "bytes"), HasSubstr("no field")) << "beyond the limit";
}

}  // namespace
}  // namespace strobe::internal
