// Filter: which rows of a profile a command works on.
#pragma once

#include <cstddef>
#include <optional>
#include <regex>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "function_lines.h"
#include "loaded_profile.h"

namespace strobe::internal {

// Bytes of a name that patterns are matched against: the library's matcher needs stack for each.
inline constexpr std::size_t kMaxMatchedBytes = 1000;

// A pattern of ECMAScript, in which an empty text matches everything. InvalidArgument if it does
// not read as one.
absl::StatusOr<std::regex> ParsePattern(const std::string& text);
bool Matches(const std::regex& pattern, const std::string& name);

struct Filter {
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
