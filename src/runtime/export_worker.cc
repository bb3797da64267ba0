#include "strobe/runtime/export_worker.h"

#include <algorithm>

namespace strobe::internal {

void FillProfile(ExportJob& job) {
  if (job.is_filled) return;
  job.is_filled = true;
  strobe::FillProfile(std::move(job.samples), job.profile);
  Profile& profile = job.profile;
  const std::size_t all = profile.value_types.size();
  std::vector<ValueType> types;
  for (const std::size_t column : job.columns) types.push_back(profile.value_types[column]);
  // In place: a row of the wanted columns never begins after the row that it comes from.
  std::size_t next = 0;
  for (std::size_t sample = 0; sample < profile.samples.size(); ++sample) {
    for (const std::size_t column : job.columns)
      profile.values[next++] = profile.values[sample * all + column];
  }
  profile.values.resize(next);
  profile.value_types = std::move(types);
}

std::int64_t AmountOf(const Profile& profile) {
  const std::size_t columns = profile.value_types.size();
  std::uint64_t amount = 0;  // forged weights may make it wrap
  for (std::size_t i = profile.default_value_type; i < profile.values.size(); i += columns) {
    amount += static_cast<std::uint64_t>(profile.values[i]);
  }
  return static_cast<std::int64_t>(amount);
}

}  // namespace strobe::internal
