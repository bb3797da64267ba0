// JoinPeriods: consecutive periods of a recording become one.
#pragma once

#include <cstddef>
#include <span>

#include "strobe/aggregate/recording.h"

namespace strobe {

// Returns what one period would be that lasts from the begin of the first to the end of the last.
// `periods` follow each other without a gap, oldest first; there is at least one. `columns` are the
// indices of the values to take, in the order wanted. `slow_spans` are those that are known to be
// slow by now, in order: a span may have become slow after its period.
//
// The residuals of the periods are added up before a profile divides them, so a thread that is
// sampled once in several periods has that sample for the time of all.
// The result takes at most the memory of the periods together. The only failure is std::bad_alloc.
RecordedPeriod JoinPeriods(std::span<const RecordedPeriod* const> periods,
                           std::span<const std::size_t> columns,
                           std::span<const SpanNumber> slow_spans);

}  // namespace strobe
