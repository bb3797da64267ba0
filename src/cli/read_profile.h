// ReadProfile: a profile from a file of any format that the command reads.
#pragma once

#include <functional>
#include <string>

#include "absl/status/statusor.h"
#include "input.h"
#include "loaded_profile.h"

namespace strobe::internal {

// Recognises the format by the first bytes after decompression: pprof, folded stacks or the text of
// `perf script`.
absl::StatusOr<LoadedProfile> ReadProfile(ByteReader compressed);

// The same for a file; an error begins with the file's name.
absl::StatusOr<LoadedProfile> ReadProfileFile(const std::string& path,
                                              std::function<void(std::uint64_t)> progress);

}  // namespace strobe::internal
