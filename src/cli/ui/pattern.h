// Pattern: a regular expression that is looked for in names.
#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "pattern_program.h"

namespace strobe::internal {

// All ways through the program are tried at once, character by character. So the time is at most
// that of the name's length times the program's, whatever both are.
class Pattern {
 public:
  // An empty text matches everything. InvalidArgument if it does not read as a pattern: see
  // PatternProgram.
  static absl::StatusOr<Pattern> Parse(const std::string& text);

  [[nodiscard]] bool Matches(std::string_view name) const;

 private:
  explicit Pattern(PatternProgram program) : program_(std::move(program)) {}

  PatternProgram program_;
};

}  // namespace strobe::internal
