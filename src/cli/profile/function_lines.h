// FunctionLines: the functions and source lines of each frame, with names for people.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "loaded_profile.h"

namespace strobe::internal {

struct NamedFunction {
  std::string name;  // valid UTF-8, without control characters
  std::string file;  // empty if unknown
};

// Functions with equal names are one: overloads and clones share a short name. Code without a name
// is a function of its module, or of its address.
class FunctionLines {
 public:
  struct Line {
    std::uint32_t function = 0;
    std::uint32_t line = 0;  // 0 if unknown
  };

  // InvalidArgument if the profile refers to something that does not exist. `full_names` keeps
  // parameters and template arguments.
  static absl::StatusOr<FunctionLines> Make(const LoadedProfile& loaded, bool full_names);

  // Innermost first: the functions inlined there, then the frame's own. Never empty.
  [[nodiscard]] std::span<const Line> Of(std::uint32_t frame) const {
    return std::span(lines_).subspan(begins_[frame], begins_[frame + 1] - begins_[frame]);
  }
  [[nodiscard]] const std::vector<NamedFunction>& functions() const { return functions_; }

 private:
  std::uint32_t Number(std::string name, const std::string& file);

  std::vector<NamedFunction> functions_;
  absl::flat_hash_map<std::string, std::uint32_t> numbers_;
  std::vector<Line> lines_;
  std::vector<std::size_t> begins_;  // of each frame in lines_, and the end
};

}  // namespace strobe::internal
