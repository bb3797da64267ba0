#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "command.h"
#include "ui/pattern.h"

namespace strobe::internal {

absl::StatusOr<FilteredProfile> MakeFilteredProfile(LoadedProfile loaded, const Request& request) {
  absl::StatusOr<FunctionLines> lines = FunctionLines::Make(loaded, request.full_names);
  if (!lines.ok()) return lines.status();
  if (absl::Status status = request.filter.Apply(loaded, *lines); !status.ok()) return status;
  FilteredProfile subject{.loaded = std::move(loaded), .lines = *std::move(lines)};
  const auto& types = subject.loaded.profile.value_types;
  subject.column = subject.loaded.profile.default_value_type;
  if (!request.type.empty()) {
    const auto found = std::ranges::find(types, request.type, &ValueType::type);
    if (found == types.end()) {
      std::string known;
      for (const ValueType& type : types) absl::StrAppend(&known, " ", std::string(type.type));
      return absl::InvalidArgumentError(
          absl::StrCat("the profile has no type ", request.type, "; it has:", known));
    }
    subject.column = static_cast<std::size_t>(found - types.begin());
    subject.loaded.profile.default_value_type = subject.column;
  }
  subject.sum = ColumnSum(subject.profile(), subject.column);
  subject.whole = ColumnMagnitude(subject.profile(), subject.column);
  subject.samples = SamplesBehind(subject.profile(), subject.column);
  return subject;
}

absl::StatusOr<MatchingFunctions> FindMatching(const FilteredProfile& subject,
                                               const Request& request) {
  const absl::StatusOr<Pattern> pattern = Pattern::Parse(request.pattern);
  if (!pattern.ok()) return pattern.status();
  MatchingFunctions found{.costs = FunctionCosts(subject.profile(), subject.lines, subject.column)};
  found.numbers = LargestCosts(found.costs, true);
  std::erase_if(found.numbers, [&](std::uint32_t number) {
    return !pattern->Matches(subject.lines.functions()[number].name);
  });
  if (found.numbers.empty())
    return absl::NotFoundError(absl::StrCat("no function matches \"", request.pattern, "\""));
  if (found.numbers.size() > MatchingFunctions::kMost) {
    found.more_text = absl::StrCat("\n", found.numbers.size() - MatchingFunctions::kMost,
                                   " more functions match\n");
    found.numbers.resize(MatchingFunctions::kMost);
  }
  return found;
}

}  // namespace strobe::internal
