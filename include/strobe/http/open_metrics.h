// OpenMetricsText: the profiler's statistics as Prometheus and its relatives scrape them.
#pragma once

#include <string>
#include <string_view>

#include "strobe/core/stats.h"

namespace strobe {

inline constexpr std::string_view kOpenMetricsContentType =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

// Each counter and each state of `stats`, by the names of OpenMetrics: "strobe_samples_total". Drops
// have a label "reason", what belongs to an output a label "output" with its number. Ends in "# EOF".
std::string OpenMetricsText(const Stats& stats);

}  // namespace strobe
