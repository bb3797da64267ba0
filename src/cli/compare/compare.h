// The subcommands that compare profiles.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "changes.h"
#include "commands/command.h"

namespace strobe::internal {

struct DiffText {
  std::string text;
  bool is_beyond_limit = false;  // one of request.limits
};
// strobe diff: what changed between two profiles, function by function.
absl::StatusOr<DiffText> DiffCommand(const FilteredProfile& base, const FilteredProfile& subject,
                                     const Request& request, const Printer& printer);

// A profile that both sides of `strobe ci` have.
struct NamedChanges {
  std::string name;  // of a benchmark or a test; may be empty if there is only one
  std::string unit;  // of the value type
  bool is_per_iteration = false;
  Changes changes;
};
struct CiSubject {
  std::vector<NamedChanges> profiles{};
  // Those that only one side has.
  std::vector<std::string> only_base{}, only_now{};
  std::size_t base_runs = 1, now_runs = 1;  // of the profile that has the fewest
};
struct CiText {
  std::string text;  // Markdown
  bool has_regression = false;
};
// strobe ci: the significant changes of all profiles, as a table. InvalidArgument if no profile
// has errors.
absl::StatusOr<CiText> CiCommand(CiSubject subject, const Request& request);

}  // namespace strobe::internal
