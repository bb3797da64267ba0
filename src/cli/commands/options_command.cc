// options: what the variables of this environment ask of programs that profile themselves.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "command_line.h"
#include "strobe/core/options.h"
#include "strobe/core/settings/known_variables.h"
#include "strobe/core/settings/option_texts.h"
#include "strobe/platform/native.h"

namespace strobe::internal {
namespace {

std::size_t WidthOfFields() {
  std::size_t width = 0;
  for (const OptionRow& row : OptionTable()) width = std::max(width, row.field.size());
  return width + 2;
}

// Of a program that sets no option itself.
Text OptionsText(const Printer& printer, bool is_long) {
  constexpr std::size_t kValueColumns = 18;
  const Environment environment = &NativePlatform::EnvironmentVariable;
  ProfilerOptions options;
  ApplyEnvironment(options, environment, &NativePlatform::WriteLine);
  for (const std::string& line :
       UnknownVariables(NativePlatform::EnvironmentNames(kVariablePrefix)))
    NativePlatform::WriteLine(line);
  const std::size_t field_columns = WidthOfFields();
  std::string text;
  for (const OptionRow& row : OptionTable()) {
    const bool is_given = SourceOf(row, options, environment) == ValueSource::kEnvironment;
    const std::string value = Left(row.get(options), kValueColumns);
    absl::StrAppend(&text, Left(row.field, field_columns), is_given ? printer.Bold(value) : value,
                    " ", std::string(is_given ? row.variable : "default"), "\n");
    if (!is_long) continue;
    absl::StrAppend(&text, "  ", std::string(row.variable), ", ", std::string(row.accepted), "\n  ",
                    std::string(row.description), "\n\n");
  }
  return text;
}

}  // namespace

void AddOptions(CommandLine& line) {
  CLI::App* const command = line.AddText(
      "options",
      "Prints the options of programs that profile themselves, with this environment's values",
      [&line] { return OptionsText(line.printer(), line.request().is_long); });
  command->add_flag("-l,--long", line.request().is_long,
                    "Also the variable, the accepted values and the meaning of each");
}

}  // namespace strobe::internal
