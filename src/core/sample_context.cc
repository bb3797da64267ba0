#include "strobe/core/sample_context.h"

#include <string>
#include <utility>
#include <vector>

namespace strobe {

LabelSet TraceLabels(const TraceContext& trace) {
  std::vector<Label> labels;
  const auto add = [&labels](std::string_view key, std::uint64_t id) {
    if (id != 0) labels.push_back({std::string(key), static_cast<std::int64_t>(id)});
  };
  add(kTraceIdLabel, trace.trace_id);
  add(kSpanIdLabel, trace.span_id);
  add(kLocalRootSpanIdLabel, trace.local_root_span_id);
  return LabelSet(std::move(labels));
}

}  // namespace strobe
