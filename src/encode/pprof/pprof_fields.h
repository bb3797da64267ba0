// The field numbers of pprof's profile.proto, of the message Profile.
#pragma once

#include <cstdint>

namespace strobe::internal {

enum ProfileField : std::uint32_t {
  kSampleType = 1,
  kSample,
  kMapping,
  kLocation,
  kFunction,
  kStringTable,
  kDropFrames,
  kKeepFrames,
  kTimeNs,
  kDurationNs,
  kPeriodType,
  kPeriod,
  kComment,
  kDefaultSampleType,
  kDocUrl,
};

}  // namespace strobe::internal
