// OutputList: the formats that profiles are written in, and the destination of each.
#pragma once

#include <array>
#include <cstddef>
#include <string_view>

#include "strobe/core/options.h"
#include "strobe/core/part.h"
#include "strobe/encode/encoder.h"
#include "strobe/export/exporter.h"

namespace strobe {

// One output: a format and a destination. Parts holds the two parts that the user has given.
template <class E, class X>
struct Output {
  static_assert(Encoder<E>, "the first argument of an Output is not an Encoder");
  static_assert(Exporter<X>, "the second argument of an Output is not an Exporter");

  static constexpr std::string_view kFileSuffix = E::kFileSuffix;
  static constexpr std::string_view kContentType = E::kContentType;
  static constexpr bool kBringsNoFiles = BringsNoFiles<X>;
  static constexpr bool kTakesWindows = TakesWindows<X>;

  Part<E> encoder{};
  Part<X, ExporterOptions> exporter{};
};

inline constexpr std::size_t kMaxOutputs = 8;
// Profiles that may wait for an output that fails while another output delivers.
inline constexpr std::size_t kMaxWaitingProfiles = 8;

// The outputs of a profiler. Each output gets every profile, and is retried separately:
// * Each output has a thread. An export that hangs delays no other output.
// * A profile that an output has delivered is not sent to it again when another output fails.
// * A profile that an output refuses for good (RefusesProfile) is dropped for that output alone.
// * While an output fails, the other outputs get their profiles as before. The failing output's
//   profiles wait, and are tried again each period. Beyond kMaxWaitingProfiles, the oldest is
//   dropped for that output, and counted.
// * While all outputs fail, no profile is dropped: the period is extended until one has delivered.
template <class... Outputs>
struct OutputList {
  static constexpr std::size_t kCount = sizeof...(Outputs);
  static constexpr bool kBringsNoFiles = (BringsNoFiles<Outputs> && ...);
  static constexpr std::array<std::string_view, kCount> kFileSuffixes{Outputs::kFileSuffix...};
  // A bit for each output, the first output's the lowest: whether it takes windows.
  static constexpr std::uint64_t kTakesWindows = [] {
    std::uint64_t bits = 0;
    unsigned bit = 0;
    ((bits |= std::uint64_t{Outputs::kTakesWindows} << bit++), ...);
    return bits;
  }();
  static_assert(kCount >= 1 && kCount <= kMaxOutputs, "an OutputList has from 1 to 8 outputs");
};

}  // namespace strobe
