// The contract of a symbolizer: the addresses of a Profile -> names.
#pragma once

#include <concepts>

#include "absl/status/statusor.h"
#include "strobe/core/profile.h"
#include "strobe/core/symbols.h"

namespace strobe {

// * Symbolize(profile) names every frame that is not a pseudo-frame: by its function, or as
//   "module+0xoffset" with `resolved` false. Symbols::frames has one entry for each frame, or is
//   empty. Pseudo-frames keep kNone. Symbols::modules has one entry for each module, or is empty.
// * A module's names come from an image with the module's build id. So they are right even if the
//   library was closed and another one loaded at the same address. A file that is gone, changed,
//   broken or hostile costs names, but never harms the program.
// * A symbolizer may keep what it read for the next call, within a limit of memory.
// Called on the exporter's thread only. Made from SymbolOptions, or by its default constructor,
// unless Parts has one.
template <class S>
concept Symbolizer = requires(S& symbolizer, const Profile& profile) {
  { symbolizer.Symbolize(profile) } -> std::same_as<absl::StatusOr<Symbols>>;
};

}  // namespace strobe
