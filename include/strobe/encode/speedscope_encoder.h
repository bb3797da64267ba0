// SpeedscopeEncoder: a Profile as speedscope's JSON (https://www.speedscope.app).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "strobe/core/profile.h"
#include "strobe/core/symbols.h"
#include "strobe/encode/encoder.h"

namespace strobe {

// * One profile of type "sampled" for each thread and value type, without those whose values are
//   all 0. The viewer begins with the thread that has most of the default value type.
// * Weights are the profile's values, and add up to the thread's. The units that speedscope does
//   not know become "none".
// * Samples are the moments, in order of time, and then what they leave of their rows.
// * A frame is a function, with a short name (see ShortFunctionName), its file and the line where
//   it begins. Inlined functions are frames of their own, and labels that the program has set are
//   frames at the root: "[request=checkout]".
class SpeedscopeEncoder {
 public:
  static constexpr std::string_view kFileSuffix = ".speedscope.json";
  static constexpr std::string_view kContentType = "application/json";
  static constexpr std::size_t kMaxBytes = std::size_t{1} << 30;

  // InvalidArgument if an index of the profile is out of range, OutOfRange if the text is too long.
  absl::StatusOr<std::string> Encode(const Profile& profile, const Symbols& symbols);
};
static_assert(Encoder<SpeedscopeEncoder>);

}  // namespace strobe
