// Readers of gperftools' own files, which `pprof` reads as well: CPU profiles, and heap profiles,
// which jemalloc writes in a form of its own.
#pragma once

#include <string_view>

#include "absl/status/statusor.h"
#include "input.h"
#include "profile/loaded_profile.h"

namespace strobe::internal {

// True if the file begins with the head of a CPU profile of a machine with little-endian words of
// 32 or 64 bits.
bool IsGperftoolsCpu(std::string_view first_bytes);
// True if the line is the first of a heap profile: "heap profile: 3: 300 [ 9: 900] @ heap_v2/4096",
// or jemalloc's "heap_v2/524288".
bool IsHeapText(std::string_view line);
// What the text is, if it is one of the other texts of pprof, which are not read; else empty.
std::string_view NameOfLegacyText(std::string_view line);

// * The frame that the signal's handler has left in nearly all stacks is removed.
// * The addresses of callers are those of their calls, as everywhere in Strobe.
// * The file's list of mappings makes the modules; names come by strobe symbolize.
absl::StatusOr<LoadedProfile> ReadGperftoolsCpu(Input& input);
// Allocated objects and bytes, and those in use; of sampled heaps, the estimate of all. Columns in
// which nothing is are left out.
absl::StatusOr<LoadedProfile> ReadHeapText(Input& input);

}  // namespace strobe::internal
