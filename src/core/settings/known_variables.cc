#include "strobe/core/settings/known_variables.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>

#include "absl/strings/escaping.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "strobe/core/options.h"
#include "strobe/core/settings/messages.h"
#include "strobe/core/settings/nearest_name.h"

namespace strobe::internal {
namespace {

// What other libraries and the command read; their tests compare. A program that does not link them
// may be started beside one that does.
constexpr std::array<std::string_view, 21> kOfOtherParts{
    "STROBE_HTTP_TIMEOUT_S",   "STROBE_HTTP_ATTEMPTS",    "STROBE_SPOOL_DIRECTORY",
    "STROBE_SPOOL_BYTES",      "STROBE_SPOOL_AGE_S",      "STROBE_CA_FILE",
    "STROBE_PARCA_URL",        "STROBE_PARCA_JOB",        "STROBE_PARCA_LABELS",
    "STROBE_PARCA_TOKEN",      "STROBE_POST_URL",         "STROBE_POST_HEADERS",
    "STROBE_PULL_ADDRESS",     "STROBE_PULL_PORT",        "STROBE_PULL_TOKEN",
    "STROBE_PULL_MAX_SECONDS", "STROBE_WORKER_OUTPUT",    kRecordingVariable,
    kRecordingUntilVariable,   kRecordingFiltersVariable, kMessagesVariable};
// The project's own tests.
constexpr std::string_view kTestPrefix = "STROBE_TEST_";
constexpr std::size_t kMaxShownBytes = 100;

std::vector<std::string_view> AllNames() {
  std::vector<std::string_view> names;
  for (const OptionRow& row : OptionTable()) names.push_back(row.variable);
  names.insert(names.end(), kOfOtherParts.begin(), kOfOtherParts.end());
  return names;
}

// The names without what all begin with: only the rest tells them apart.
std::string_view NearestVariable(std::string_view name) {
  std::vector<std::string_view> ends = AllNames();
  for (std::string_view& end : ends) end.remove_prefix(kVariablePrefix.size());
  return NearestName(name.substr(std::min(kVariablePrefix.size(), name.size())), ends);
}

}  // namespace

std::int64_t RecordingUntilNs(const std::optional<std::string>& value) {
  std::int64_t until_ns = 0;
  return value && absl::SimpleAtoi(*value, &until_ns) && until_ns > 0 ? until_ns : INT64_MAX;
}

bool IsKnownVariable(std::string_view name) {
  if (name.starts_with(kTestPrefix)) return true;
  const std::vector<std::string_view> names = AllNames();
  if (std::ranges::find(names, name) != names.end()) return true;
  return name.starts_with(kRecordPrefix) &&
         std::ranges::find(names, absl::StrCat(std::string(kVariablePrefix),
                                               std::string(name.substr(kRecordPrefix.size())))) !=
             names.end();
}

std::vector<std::string> UnknownVariables(std::span<const std::string> names) {
  std::vector<std::string> lines;
  const auto is_of_record = [](std::string_view name) { return name.starts_with(kRecordPrefix); };
  if (std::ranges::any_of(names, is_of_record)) return lines;
  for (const std::string& name : names) {
    if (IsKnownVariable(name)) continue;
    const std::string_view nearest = NearestVariable(name);
    lines.push_back(absl::StrCat(
        "strobe: ", absl::CHexEscape(absl::string_view(name).substr(0, kMaxShownBytes)),
        " is not an option",
        nearest.empty() ? "; src/docs/options.md lists them all"
                        : absl::StrCat("; did you mean ", std::string(kVariablePrefix),
                                       std::string(nearest), "?")));
  }
  return lines;
}

void WarnOfUnknownVariables(const std::function<std::vector<std::string>()>& names,
                            const std::function<void(const std::string&)>& warn) {
  static constinit std::atomic<bool> is_done{false};
  if (is_done.exchange(true)) return;
  for (const std::string& line : UnknownVariables(names())) warn(line);
}

}  // namespace strobe::internal
