#include "strobe/runtime/export_worker.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace strobe::internal {

void FillProfile(ExportJob& job) {
  if (job.is_filled) return;
  strobe::FillProfile(std::move(job.samples), job.profile);
  job.is_filled = true;
}

std::int64_t AmountOf(const ExportJob& job) {
  const Profile& profile = job.profile;
  if (!job.is_filled) return job.samples.rows.Sum(profile.default_value_type);
  const std::size_t columns = profile.value_types.size();
  std::uint64_t amount = 0;  // forged weights may make it wrap
  for (std::size_t i = profile.default_value_type; i < profile.values.size(); i += columns) {
    amount += static_cast<std::uint64_t>(profile.values[i]);
  }
  return static_cast<std::int64_t>(amount);
}

std::vector<OutputStats> NewAccount(std::span<const std::string_view> file_suffixes) {
  std::vector<OutputStats> account(file_suffixes.size());
  if (account.size() == 1) return account;
  for (std::size_t i = 0; i < account.size(); ++i)
    account[i].name = absl::StrCat("output ", i + 1, " (", std::string(file_suffixes[i]), ")");
  return account;
}

void AddOutputs(Stats& stats, const std::vector<OutputStats>& outputs) {
  if (stats.outputs.size() < outputs.size()) stats.outputs.resize(outputs.size());
  stats.last_export_error.clear();
  std::string path;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const OutputStats& more = outputs[i];
    OutputStats& sum = stats.outputs[i];
    sum.name = more.name;
    sum.exports += more.exports;
    sum.exports_failed += more.exports_failed;
    sum.exports_dropped += more.exports_dropped;
    sum.amount_dropped += more.amount_dropped;
    sum.last_export_error = more.last_export_error;
    if (!more.last_export_path.empty()) sum.last_export_path = more.last_export_path;
    stats.exports += more.exports;
    stats.exports_failed += more.exports_failed;
    stats.exports_dropped += more.exports_dropped;
    stats.amount_dropped += more.amount_dropped;
    if (stats.last_export_error.empty() && !more.last_export_error.empty()) {
      stats.last_export_error =
          std::string(OfOutput(absl::UnknownError(more.last_export_error), more.name).message());
    }
    if (path.empty()) path = sum.last_export_path;
  }
  if (!path.empty()) stats.last_export_path = path;
}

absl::Status OfOutput(const absl::Status& status, const std::string& name) {
  if (status.ok() || name.empty()) return status;
  return {status.code(), absl::StrCat(name, ": ", status.message())};
}

}  // namespace strobe::internal
