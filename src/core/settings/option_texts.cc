#include "strobe/core/settings/option_texts.h"

#include <optional>

#include "absl/strings/str_cat.h"

namespace strobe::internal {

ValueSource SourceOf(const OptionRow& row, const ProfilerOptions& options,
                     const Environment& environment) {
  if (row.is_set(options)) return ValueSource::kCode;
  const std::optional<std::string> text = environment(row.variable.data());
  ProfilerOptions read;
  const bool is_read = text && row.set(read, *text, OptionSource::kEnvironment);
  return is_read && row.get(read) == row.get(options) ? ValueSource::kEnvironment
                                                      : ValueSource::kDefault;
}

std::vector<std::string> GivenOptions(const ProfilerOptions& options,
                                      const Environment& environment) {
  std::vector<std::string> lines;
  for (const OptionRow& row : OptionTable()) {
    const ValueSource source = SourceOf(row, options, environment);
    if (source == ValueSource::kDefault) continue;
    const std::string variable(row.variable);
    std::string line = absl::StrCat(std::string(row.field), "=", row.get(options), " by ",
                                    source == ValueSource::kCode ? "code" : variable);
    if (source == ValueSource::kCode && environment(row.variable.data()))
      absl::StrAppend(&line, ", not by ", variable);
    lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace strobe::internal
