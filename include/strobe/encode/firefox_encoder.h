// FirefoxEncoder: a Profile as the Firefox Profiler's processed JSON, gzipped: threads, a timeline
// with each thread's CPU use, inlined functions, markers. https://profiler.firefox.com and Perfetto
// open it.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "strobe/core/profile.h"
#include "strobe/core/symbols.h"
#include "strobe/encode/encoder.h"

namespace strobe {

struct FirefoxOptions {
  // The name of the value type that samples weigh: "wall". If empty, the profile's default.
  std::string value_type = {};
};

// * A sample is a moment with its time. What the moments of a row leave of it stands at the end of
//   the thread's life. For a thread without moments, times say nothing: its rows fill its life, as
//   long as their share of the thread's sum, and those with equal labels stand side by side.
// * Weights add up to the thread's sum of the value type: milliseconds with all digits of the
//   nanoseconds, bytes, or a count.
// * threadCPUDelta holds the CPU time of each sample, if the profile has the value type cpu in
//   nanoseconds. Where a moment's CPU time fills less than half of the time since the last one, the
//   thread is shown idle in between.
// * The markers "Thread" are a thread's registrations. A marker with a label's key covers the
//   samples in a row that have the label; it holds the label's value. A zone has one with its name
//   that holds its path. So it shows where samples were in the zone: entries that no sample or only
//   samples in the same zone lie between are one marker, and one without a sample has none.
// * Categories are kinds of code: program, library, system, generated code, other.
// * No end of the recording is written: viewers leave out the samples at that time.
// * The profile's account and the sums of all value types stand in the profile's information.
class FirefoxEncoder {
 public:
  static constexpr std::string_view kFileSuffix = ".firefox.json.gz";
  static constexpr std::string_view kContentType = "application/gzip";
  // meta.preprocessedProfileVersion. Viewers upgrade older versions. From 66 on stackTable has no
  // column "prefix", and Perfetto (v53) cannot read it.
  static constexpr int kFormatVersion = 61;
  // The longest text before compression. Browsers hold no longer ones.
  static constexpr std::size_t kMaxBytes = std::size_t{512} << 20;

  FirefoxEncoder() = default;
  explicit FirefoxEncoder(FirefoxOptions options);

  // InvalidArgument if an index of the profile is out of range or the value type is missing,
  // OutOfRange if the text is too long, ResourceExhausted if there is no memory to compress it.
  absl::StatusOr<std::string> Encode(const Profile& profile, const Symbols& symbols);

  // The text itself, before gzip. Viewers read this as well.
  absl::StatusOr<std::string> EncodeUncompressed(const Profile& profile, const Symbols& symbols);

 private:
  FirefoxOptions options_;
};
static_assert(Encoder<FirefoxEncoder>);

}  // namespace strobe
