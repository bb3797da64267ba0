// CodeSamples: what a profile's samples say of the code of one binary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "profile/loaded_profile.h"
#include "strobe/core/module_map.h"
#include "strobe/symbolize/symbol_files.h"
#include "strobe/symbolize/symbol_search.h"

namespace strobe::internal {

// Of more functions that are inlined into each other, none is known.
inline constexpr std::size_t kMaxPlaceFrames = 64;

struct CodeSamples {
  // An address of the binary that was sampled, or that called what was sampled.
  struct Place {
    std::vector<SourceFrame> frames{};  // innermost first; empty if nothing is known
    std::string symbol{};               // of the function there; empty if unknown
    std::uint64_t symbol_bytes = 0;     // of the function; 0 if unknown
    std::int64_t amount = 0;            // of the samples whose innermost frame is here
    // Of code in the same function that has the same frames; 0 if unknown: see kMaxReadBytes.
    std::uint64_t code_bytes = 0;
    bool is_entry = false;  // a function with this symbol begins here
  };
  // The calls from one place to the function that has another place.
  struct Call {
    std::uint32_t caller = 0;  // an index into `places`
    std::uint32_t callee = 0;  // an index into `places`
    std::int64_t amount = 0;   // of the samples that have this call in their stacks
  };
  std::vector<Place> places;
  std::vector<Call> calls;
};

// The samples of one build of the binary. Builds differ in their build ids.
struct BuildSamples {
  std::string build_id;     // of the profile's module; empty if it has none
  bool is_current = false;  // the binary's own build
  // The frames are those of the debug information of this build. Else that was not found, and they
  // are what the profile itself says.
  bool has_file = false;
  CodeSamples code;
};

struct BinarySamples {
  std::int64_t whole = 0;    // the sum of the column
  double sample_amount = 1;  // the mean of a sample's
  std::vector<BuildSamples> builds;
};

// The ELF file at `path` as if it were loaded at its own addresses. NotFound if it is none for
// x86-64 or aarch64.
absl::StatusOr<Module> ModuleOf(const std::string& path, const SymbolFiles& files);

// Of `binary`, by its build id and by the name of its file: a module of that name with
// another build id is another build. A module without a build id, or of a binary without one, is
// the binary's own build if it has its name. Builds are looked for as `strobe symbolize` does.
// NotFound if no frame has an address in it.
absl::StatusOr<BinarySamples> CollectCodeSamples(const LoadedProfile& loaded, std::size_t column,
                                                 const Module& binary, const SymbolFiles& files,
                                                 const SymbolSearch& search);

}  // namespace strobe::internal
