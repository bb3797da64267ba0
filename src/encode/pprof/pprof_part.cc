#include "strobe/encode/pprof_part.h"

#include <algorithm>

#include "strobe/core/thread_info.h"

namespace strobe {

bool PprofPart::Has(const LabelSet& labels, std::span<const std::int64_t> values) const {
  return std::ranges::any_of(columns, [&](std::size_t column) { return values[column] != 0; }) &&
         (!threads || std::ranges::find(*threads, labels.Text(kThreadNameLabel)) != threads->end());
}

bool PprofPart::HasSamplesOf(const Profile& profile) const {
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    if (Has(profile.Labels(i), profile.Values(i))) return true;
  }
  return false;
}

}  // namespace strobe
