// Holds README.md, and the table of src/docs/options.md, to the code that they describe.
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_format.h"
#include "root/readme_path.h"
#include "strobe/core/options.h"

namespace strobe {
namespace {

std::vector<std::string> LinesOf(const char* path) {
  std::vector<std::string> lines;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) lines.push_back(line);
  return lines;
}

TEST(Options, TheirTableIsTheCodes) {
  std::vector<std::string> written;
  for (const std::string& line : LinesOf(kOptionsPath)) {
    if (line.starts_with("| `STROBE_")) written.push_back(line);
  }
  std::vector<std::string> expected;
  std::string whole;
  for (const OptionRow& row : OptionTable()) {
    expected.push_back(absl::StrFormat(
        "| `%s` | `%s` | `%s` | %s | %s |", std::string(row.variable), std::string(row.field),
        row.get({}), std::string(row.accepted), std::string(row.description)));
    whole += expected.back() + "\n";
  }
  EXPECT_EQ(written, expected) << "The table should be:\n" << whole;
}

// The sections come in the order of a new reader's questions.
TEST(Readme, ItsSectionsStandInOrder) {
  std::vector<std::string> sections;
  for (const std::string& line : LinesOf(kReadmePath)) {
    if (line.starts_with("## ")) sections.push_back(line.substr(3));
  }
  EXPECT_EQ(sections, (std::vector<std::string>{"Two commands", "Five lines", "Questions",
                                                "Features", "Configuration"}));
}

TEST(Readme, IsShort) { EXPECT_LE(LinesOf(kReadmePath).size(), 80U); }

}  // namespace
}  // namespace strobe
