// Filter: which rows of a profile a command works on.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "function_lines.h"
#include "loaded_profile.h"

namespace strobe::internal {

struct Filter {
  // Patterns: see pattern.h.
  std::string focus{};   // keeps stacks with a function that matches
  std::string ignore{};  // removes them
  std::string thread{};  // keeps threads whose name matches, or with this id
  std::vector<std::pair<std::string, std::string>> labels{};  // all must be there
  // Seconds since the profile's first moment.
  std::optional<double> from_s{}, to_s{};

  // Removes the other rows. FailedPrecondition for times of a profile that keeps none.
  absl::Status Apply(LoadedProfile& loaded, const FunctionLines& lines) const;
};

}  // namespace strobe::internal
