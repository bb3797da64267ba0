// ScopedZone: a named region of the calling thread. Samples of the thread have its name.
//
//   strobe::ScopedZone zone("parse");
//   strobe::ScopedZone request("request", {.slow_over_ns = 50'000'000});
#pragma once

#include "strobe/base/visibility.h"
#include "strobe/core/zone.h"
#include "strobe/scoped_labels.h"
#include "strobe/slow_span.h"

namespace strobe {

// Zones nest, and the end of the scope restores the zones and labels that were there before, so it
// must be on the same thread. Samples have the path of their zones ("request;parse") as the label
// kZoneLabel, and with collector.zone_frames also as frames at the root of their stacks. The label
// is one of the thread's: CurrentLabels() has it, and another thread can take it over.
// With a threshold, the zone is a SlowSpan, too.
// Limits: ZoneName::kMaxBytes, kMaxZones, and LabelTable's, as each path is a set of labels.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wattributes"  // holds what is hidden
class [[nodiscard]] ScopedZone {
 public:
  // `name` is a literal: ScopedZone zone("parse"). For a text of the run, see ScopedLabels, or
  // ZoneName::Of if it has few forms.
  explicit ScopedZone(const ZoneName& name, const SpanOptions& options = {}) noexcept
      : span_(options.slow_over_ns), labels_(Labels::Of(name, CurrentLabels())) {}
  ScopedZone(const ScopedZone&) = delete;
  ScopedZone& operator=(const ScopedZone&) = delete;

 private:
  SlowSpan span_;
  ScopedLabels labels_;
};
#pragma GCC diagnostic pop

}  // namespace strobe
