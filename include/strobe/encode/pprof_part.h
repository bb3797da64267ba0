// PprofPart: some columns and threads of a profile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "strobe/core/label_set.h"
#include "strobe/core/profile.h"

namespace strobe {

// For servers that want one value type, or one thread, in each file.
struct PprofPart {
  std::vector<std::size_t> columns;     // indices of Profile::value_types
  std::vector<std::string> names = {};  // of the columns; empty keeps the name
  // Their names; an empty name is that of samples without one. All threads if there are none.
  std::optional<std::vector<std::string>> threads = {};

  // True if the part has the sample, with these values: of one of its threads, and not all 0 in
  // its columns.
  [[nodiscard]] bool Has(const LabelSet& labels, std::span<const std::int64_t> values) const;
  // True if the part has a sample of the profile, which ProfileView::Make has taken.
  [[nodiscard]] bool HasSamplesOf(const Profile& profile) const;
};

}  // namespace strobe
