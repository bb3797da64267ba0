// ReadPprof: profile.proto, as the stream that it is: no part of the file is kept but the profile.
#pragma once

#include <cstddef>

#include "absl/status/statusor.h"
#include "input.h"
#include "profile/loaded_profile.h"

namespace strobe::internal {

// The longest string, sample or other part of the message.
inline constexpr std::size_t kMaxPprofFieldBytes = std::size_t{16} << 20;

// * The labels "thread_id" and "thread_name", as PprofEncoder writes them, become a profiler's own.
// * A sample with the label "end_timestamp_ns" is a moment.
// * A function whose name is the short form of its system name (as PprofEncoder writes it) gets the
//   system name, so that reading and writing changes nothing.
// * The program is called what comments say (see kProgramComment), if they agree, or what its file
//   is.
// * A module's kind and format are guessed from its file's name. load_bias assumes that the file's
//   addresses equal its offsets, which is true of most ELF files.
absl::StatusOr<LoadedProfile> ReadPprof(Input& input);

}  // namespace strobe::internal
