// PprofEncoder: a Profile as gzipped profile.proto, the format of Google's pprof and of most
// servers that store profiles.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "strobe/core/profile.h"
#include "strobe/core/symbols.h"
#include "strobe/encode/encoder.h"
#include "strobe/encode/pprof_part.h"
#include "strobe/encode/profile_view.h"

namespace strobe {

// Which keys and values a reader expects of labels.
enum class PprofLabels : std::uint8_t {
  // For pprof, Pyroscope, Polar Signals and other readers: "thread_id" and "thread_name", both
  // texts. Each space in a key is a '_', because Pyroscope hides keys with spaces. pprof prints
  // numbers as floating point, and Pyroscope does not show them, so the id is a text.
  kCommon,
  // For Datadog's intake: the keys of the profile, "thread id" (a number) and "thread name".
  kDatadog,
};

struct PprofOptions {
  PprofLabels labels = PprofLabels::kCommon;
  // False writes short names (see ShortFunctionName), and the full ones as system names. True
  // writes full names, and those of the symbol table as system names.
  bool full_names = false;
  // True makes each moment that was kept a sample of its own, with the number label
  // "end_timestamp_ns" (since 1970). What the moments of a row leave of it is one more sample.
  // False is for servers that make a series of each set of labels.
  bool moments = true;
  // What is written of the profile: all of it, or a part, with the locations, functions and
  // mappings that its samples need. The columns must be the profile's.
  std::optional<PprofPart> part = {};
  // Texts that take the place of the profiler's account, for a profile that was read from a file.
  std::optional<std::vector<std::string>> comments = {};
  // How often the profiled work was done; 0 if unknown. A comment says it: see encode/iterations.h.
  double iterations = 0;
  // More that a file may have, and a profiler does not: the units of labels that are numbers, by
  // key; and the regular expressions of frames that viewers leave out, or do not.
  std::map<std::string, std::string, std::less<>> number_units = {};
  std::string drop_frames = {};
  std::string keep_frames = {};
};

// * Ids are 1, 2, 3 and so on (Parca refuses others): location i + 1 is frame i, or the i-th that a
//   part needs. Mappings and functions are numbered in the order of their first use. The program is
//   the first mapping; other modules are left out if no location lies in them.
// * A location has a mapping only if its address lies in that mapping; a pseudo-frame has neither a
//   mapping nor an address. Code without a name keeps its address, and has the function
//   "[libz.so.1]".
// * The lines of a location are the functions inlined there, innermost first, and then its own.
// * A mapping has has_functions if a name was looked up for each of its locations; has_filenames,
//   or has_line_numbers and has_inline_frames, if files, or lines, are known for each. Without
//   them, pprof looks up symbols by itself and replaces names.
// * The comments hold the profiler's account, as text for people, unless the options have others.
// * Strings are made valid UTF-8: readers refuse a message with any string that is not.
class PprofEncoder {
 public:
  static constexpr std::string_view kFileSuffix = ".pb.gz";
  static constexpr std::string_view kContentType = "application/octet-stream";
  // The longest message before compression. protobuf itself allows 2 GiB.
  static constexpr std::size_t kMaxMessageBytes = std::size_t{1} << 30;

  PprofEncoder() = default;
  explicit PprofEncoder(PprofOptions options) : options_(std::move(options)) {}

  // InvalidArgument if an index of the profile or of the part is out of range, OutOfRange if the
  // message is too long, ResourceExhausted if there is no memory to compress it.
  absl::StatusOr<std::string> Encode(const Profile& profile, const Symbols& symbols);
  // The same of a profile that is encoded several times, in parts.
  absl::StatusOr<std::string> Encode(const ProfileView& view);

  // The message itself, before gzip. pprof reads this as well.
  absl::StatusOr<std::string> EncodeUncompressed(const Profile& profile, const Symbols& symbols);

 private:
  absl::StatusOr<std::string> EncodeUncompressed(const ProfileView& view);

  PprofOptions options_;
};
static_assert(Encoder<PprofEncoder>);
static_assert(PprofEncoder::kFileSuffix == kProfileFileSuffixes[0]);

}  // namespace strobe
