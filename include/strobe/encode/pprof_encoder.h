// PprofEncoder: a Profile as gzipped profile.proto, the format of Google's pprof and of most
// servers that store profiles.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "strobe/core/profile.h"
#include "strobe/core/symbols.h"
#include "strobe/encode/encoder.h"

namespace strobe {

// * Ids are small and sequential: location i + 1 is frame i, mapping i + 1 is module i, function i
//   + 1 is Symbols::functions[i]; the functions of pseudo-frames come after those.
// * A location has a mapping only if its address lies in that mapping; a pseudo-frame has neither a
//   mapping nor an address.
// * A mapping has has_functions only if each of its locations has a real symbol. Without it, pprof
//   looks up symbols by itself.
// * Labels of a sample: "thread id" (number) and "thread name" (text, if the thread has a name).
// * The comments hold the profiler's account, as text for people.
// * Strings are made valid UTF-8: readers refuse a message with any string that is not.
class PprofEncoder {
 public:
  static constexpr std::string_view kFileSuffix = ".pb.gz";
  static constexpr std::string_view kContentType = "application/octet-stream";
  // The longest message before compression. protobuf itself allows 2 GiB.
  static constexpr std::size_t kMaxMessageBytes = std::size_t{1} << 30;

  // InvalidArgument if an index of the profile is out of range, ResourceExhausted if the message is
  // too long.
  absl::StatusOr<std::string> Encode(const Profile& profile, const Symbols& symbols);

  // The message itself, before gzip. pprof reads this as well.
  absl::StatusOr<std::string> EncodeUncompressed(const Profile& profile, const Symbols& symbols);
};
static_assert(Encoder<PprofEncoder>);
static_assert(PprofEncoder::kFileSuffix == kProfileFileSuffixes[0]);

}  // namespace strobe
