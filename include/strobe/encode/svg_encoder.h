// SvgEncoder: a Profile as a picture of its flame graph, for documents and chats.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "strobe/core/profile.h"
#include "strobe/core/symbols.h"
#include "strobe/encode/encoder.h"

namespace strobe {

struct SvgOptions {
  // The name of the value type to show: "cpu". If empty, the profile's default.
  std::string value_type = {};
};

// * The picture is SVG 1.1 without a script, a style sheet or a reference to another file. Its
//   texts are escaped, and contain no character that XML refuses.
// * A box is a function below its caller, as wide as its share of the total; the widest callee
//   comes first. Inlined functions are boxes of their own. Colours are those of HtmlEncoder: a hue
//   a module, lighter for inlined functions, grey for what is not code, such as "[residual]".
// * A box has its function's short name, cut to its width, and a tooltip with the whole name,
//   the module, the amount and the share. The head has the totals of what is not code, also where
//   a box is too narrow to see.
// * Functions narrower than kLeastWidthPx, or beyond the other limits, are one grey box in their
//   caller. Its tooltip has their number and their share. So the boxes of a caller's callees, and
//   what the caller has for itself, add up to the caller's box.
class SvgEncoder {
 public:
  static constexpr std::string_view kFileSuffix = ".svg";
  static constexpr std::string_view kContentType = "image/svg+xml";

  static constexpr int kWidthPx = 1200;  // of all boxes of a row
  static constexpr double kLeastWidthPx = 0.6;
  // The widest functions that are drawn, and the most below each other.
  static constexpr std::size_t kMaxBoxes = 10'000;
  static constexpr std::size_t kMaxLevels = 500;
  // A longer name is cut.
  static constexpr std::size_t kMaxNameBytes = 300;

  SvgEncoder() = default;
  explicit SvgEncoder(SvgOptions options);

  // InvalidArgument if an index of the profile is out of range or the value type is missing,
  // ResourceExhausted if the profile has too many stacks for a picture.
  absl::StatusOr<std::string> Encode(const Profile& profile, const Symbols& symbols);

 private:
  SvgOptions options_;
};
static_assert(Encoder<SvgEncoder>);
static_assert(SvgEncoder::kFileSuffix == kProfileFileSuffixes[6]);

}  // namespace strobe
