// OpenMetricsText: the profiler's statistics as Prometheus and its relatives scrape them.
#pragma once

#include <string>
#include <string_view>

#include "strobe/core/stats.h"

namespace strobe {

inline constexpr std::string_view kOpenMetricsContentType =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

// Each counter and each state of `stats`, by the names of OpenMetrics: "strobe_samples_total".
// Drops have a label "reason". What belongs to an output has a label "output" with its number. The
// text ends in "# EOF".
std::string OpenMetricsText(const Stats& stats);

}  // namespace strobe
