#include "strobe/scoped_labels.h"

#include "strobe/aggregate/label_table.h"

namespace strobe {

Labels Labels::Of(std::span<const LabelView> labels, Labels outer) noexcept {
  return Labels(ProcessLabels().Intern(outer.number_, labels));
}

Labels Labels::Of(const ZoneName& zone, Labels outer) noexcept {
  return Labels(ProcessLabels().Intern(outer.number_, zone));
}

const LabelSet& Labels::set() const { return ProcessLabels()[number_]; }
}  // namespace strobe
