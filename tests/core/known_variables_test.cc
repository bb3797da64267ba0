#include "strobe/core/settings/known_variables.h"

#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/core/options.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

using Names = std::vector<std::string>;

std::vector<std::string> Unknown(const Names& names) { return UnknownVariables(names); }

TEST(KnownVariables, EveryOptionIsKnownAlsoForTheProgramsBelowRecord) {
  Names names;
  for (const OptionRow& row : OptionTable()) {
    EXPECT_TRUE(IsKnownVariable(row.variable)) << row.variable;
    names.emplace_back(row.variable);
    EXPECT_TRUE(IsKnownVariable(std::string(kRecordPrefix) +
                                std::string(row.variable.substr(kVariablePrefix.size()))))
        << row.variable;
  }
  EXPECT_THAT(Unknown(names), IsEmpty());
  EXPECT_FALSE(IsKnownVariable("STROBE_RECORD_SPEED"));
  EXPECT_FALSE(IsKnownVariable("STROBE_"));
}

TEST(KnownVariables, TheNearestIsNamed) {
  EXPECT_THAT(
      Unknown({"STROBE_CPU_FREQUENCY", "STROBE_MAX_FRAMES", "STROBE_OUTPUT_DIR"}),
      ElementsAre(
          "strobe: STROBE_CPU_FREQUENCY is not an option; did you mean STROBE_CPU_FREQUENCY_HZ?",
          "strobe: STROBE_OUTPUT_DIR is not an option; did you mean STROBE_OUTPUT_DIRECTORY?"));
  EXPECT_THAT(Unknown({"STROBE_HTTP_TIMEOUT"}),
              ElementsAre("strobe: STROBE_HTTP_TIMEOUT is not an option; did you mean "
                          "STROBE_HTTP_TIMEOUT_S?"));
}

TEST(KnownVariables, WhereNoneIsNearTheListIsNamed) {
  EXPECT_THAT(
      Unknown({"STROBE_XYZXYZ"}),
      ElementsAre("strobe: STROBE_XYZXYZ is not an option; src/docs/options.md lists them all"));
}

TEST(KnownVariables, ALineIsShortAndPrintable) {
  const std::vector<std::string> lines = Unknown({"STROBE_\x1B\n" + std::string(9999, 'x')});
  ASSERT_EQ(lines.size(), 1U);
  EXPECT_LT(lines[0].size(), 300U);
  EXPECT_EQ(lines[0].find('\n'), std::string::npos);
  EXPECT_EQ(lines[0].find('\x1B'), std::string::npos);
}

TEST(KnownVariables, BelowRecordTheCommandHasSaidIt) {
  EXPECT_THAT(Unknown({"STROBE_FREQ", "STROBE_RECORD_MAX_FILES"}), IsEmpty());
}

TEST(KnownVariables, ARecordingWithoutATimeNeverEnds) {
  EXPECT_EQ(RecordingUntilNs("12000000000"), 12'000'000'000);
  for (const char* value : {"", "soon", "0", "-5", "99999999999999999999"})
    EXPECT_EQ(RecordingUntilNs(value), INT64_MAX) << value;
  EXPECT_EQ(RecordingUntilNs(std::nullopt), INT64_MAX);
  EXPECT_TRUE(IsKnownVariable(kRecordingUntilVariable));
  EXPECT_TRUE(IsKnownVariable(kRecordingFiltersVariable));
}

// Another test of this program may have made a profiler, which has warned then.
TEST(KnownVariables, AProcessIsToldOnce) {
  int lines = 0;
  const auto warn = [&lines](const std::string& /*line*/) { ++lines; };
  const auto names = [] { return Names{"STROBE_FREQ"}; };
  WarnOfUnknownVariables(names, warn);
  EXPECT_LE(lines, 1);
  lines = 0;
  WarnOfUnknownVariables(names, warn);
  EXPECT_EQ(lines, 0);
}

}  // namespace
}  // namespace strobe::internal
