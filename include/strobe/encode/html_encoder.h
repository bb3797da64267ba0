// HtmlEncoder: a Profile as one HTML file for a browser: flame graph, functions with their callers
// and callees, call tree, heatmap of time, lives of threads, and the comparison of two profiles.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "strobe/core/profile.h"
#include "strobe/core/symbols.h"
#include "strobe/encode/encoder.h"

namespace strobe {

// * The file needs no network and no other file. Its Content-Security-Policy allows its own script
//   and style only, by their hashes.
// * Texts of the profile are never a part of the page's HTML: the page gets them as compressed data
//   and shows them literally. Only the program's name stands in the title, escaped.
// * Code at the same line of the same function, inlined at the same place, is one node of the tree.
// * Sizes are limited. A profile beyond a limit gives a page that shows the heaviest part, and says
//   so; sums stay complete.
class HtmlEncoder {
 public:
  static constexpr std::string_view kFileSuffix = ".html";
  static constexpr std::string_view kContentType = "text/html";

  // Nodes of the tree of stacks. The lightest nodes beyond it become "[small stacks]", one for each
  // caller.
  static constexpr std::size_t kMaxNodes = std::size_t{1} << 20;
  // Beyond it, every second, third, … moment is kept, with two, three, … times its values.
  static constexpr std::size_t kMaxMoments = std::size_t{1} << 20;
  // Lives of threads: those with the most CPU time. The number of all is there.
  static constexpr std::size_t kMaxLives = 1000;
  // Inlined functions of one frame; further ones count for the last of them.
  static constexpr std::size_t kMaxInlined = 64;
  // A longer name is cut.
  static constexpr std::size_t kMaxTextBytes = 4096;
  // The longest page.
  static constexpr std::size_t kMaxPageBytes = std::size_t{64} << 20;

  // InvalidArgument if an index of the profile is out of range, ResourceExhausted if the page would
  // be longer than kMaxPageBytes.
  absl::StatusOr<std::string> Encode(const Profile& profile, const Symbols& symbols);

  // The page that says what `profile` has more or less of than `base`, and which changes are
  // significant. It shows the value types of `profile`. Functions of the two profiles are the same
  // if their names and the base names of their files and modules are equal. InvalidArgument, too,
  // if the profiles have no value type in common.
  absl::StatusOr<std::string> EncodeComparison(const Profile& profile, const Symbols& symbols,
                                               const Profile& base, const Symbols& base_symbols);
};
static_assert(Encoder<HtmlEncoder>);
static_assert(HtmlEncoder::kFileSuffix == kProfileFileSuffixes[5]);

}  // namespace strobe
