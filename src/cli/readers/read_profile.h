// ReadProfile: a profile from a file of any format that the command reads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "input.h"
#include "profile/loaded_profile.h"
#include "read_text.h"

namespace strobe::internal {

// Recognises the format by the first bytes after decompression: pprof, folded stacks (whose numbers
// have `unit`), the text of `perf script`, or gperftools' and jemalloc's own. ResourceExhausted if
// it takes more than `max_memory` bytes; 0 takes the default of memory_limit.h.
absl::StatusOr<LoadedProfile> ReadProfile(ByteReader compressed, std::size_t max_memory = 0,
                                          const FoldedUnit& unit = {});

// The same for a file; an error begins with the file's name.
absl::StatusOr<LoadedProfile> ReadProfileFile(const std::string& path,
                                              std::function<void(std::uint64_t)> progress,
                                              std::size_t max_memory = 0,
                                              const FoldedUnit& unit = {});

}  // namespace strobe::internal
