// The contract of a symbolizer: the addresses of a Profile -> names.
#pragma once

#include <concepts>

#include "absl/status/statusor.h"
#include "strobe/core/profile.h"
#include "strobe/core/symbols.h"

namespace strobe {

// * Symbolize(profile) answers for every frame that is not a pseudo-frame: its function's name, or
//   "module+0xoffset" with `resolved` false. Either Symbols::frames has one entry for each frame,
//   or it is empty. Pseudo-frames keep kNone.
// * A module's names come from an image with the module's own build id, so that they are right
//   after a dlclose and a reload of something else at the same address. A file that is gone,
//   changed, broken or hostile costs names, never the program.
// * It may keep what it read for the next call; its memory is bounded.
// Called on the exporter's thread only. Made by its default constructor where none is given in
// Parts.
template <class S>
concept Symbolizer = requires(S& symbolizer, const Profile& profile) {
  { symbolizer.Symbolize(profile) } -> std::same_as<absl::StatusOr<Symbols>>;
};

}  // namespace strobe
