// FoldedEncoder: a Profile as folded stacks, one line a row: "main;Run;Step 42". flamegraph.pl,
// speedscope, the Firefox Profiler and many other tools read it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "strobe/core/profile.h"
#include "strobe/core/symbols.h"
#include "strobe/encode/encoder.h"

namespace strobe {

struct FoldedOptions {
  // The name of the value type to write: "cpu". If empty, the first that is a count, because some
  // readers make a sample of each unit; without one, the profile's default.
  std::string value_type = {};
  // True begins each stack with the thread's name.
  bool threads = true;
  // True goes on with the labels that the program has set: "[request=checkout]".
  bool labels = true;
};

// * A line has the frames from the root to the leaf, with ';' between them, a space, and the value.
//   Rows with the value 0 are left out. The values of all lines add up to the column's sum.
// * A frame is a short function name (see ShortFunctionName); inlined functions are frames of their
//   own. In names, ';' becomes ':' and control characters become spaces.
// * A profile without values is the line "[no samples] 0": readers refuse an empty file.
class FoldedEncoder {
 public:
  static constexpr std::string_view kFileSuffix = ".folded";
  static constexpr std::string_view kContentType = "text/plain; charset=utf-8";
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 30;

  FoldedEncoder() = default;
  explicit FoldedEncoder(FoldedOptions options);

  // InvalidArgument if an index of the profile is out of range or the value type is missing,
  // OutOfRange if the text is too long.
  absl::StatusOr<std::string> Encode(const Profile& profile, const Symbols& symbols);

 private:
  FoldedOptions options_;
};
static_assert(Encoder<FoldedEncoder>);

}  // namespace strobe
