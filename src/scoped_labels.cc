#include "strobe/scoped_labels.h"

#include "strobe/aggregate/label_table.h"
#include "strobe/platform/capture_target.h"

namespace strobe {

Labels Labels::Of(std::span<const LabelView> labels, Labels outer) noexcept {
  return Labels(ProcessLabels().Intern(outer.number_, labels));
}

Labels Labels::Of(const ZoneName& zone, Labels outer) noexcept {
  return Labels(ProcessLabels().Intern(outer.number_, zone));
}

const LabelSet& Labels::set() const { return ProcessLabels()[number_]; }

Labels CurrentLabels() noexcept { return Labels(internal::OwnContext().labels); }

Labels ExchangeLabels(Labels labels) noexcept {
  return Labels(internal::ExchangeOwnLabels(labels.number_));
}

}  // namespace strobe
