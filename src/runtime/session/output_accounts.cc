#include "strobe/runtime/session/output_accounts.h"

#include <cstddef>

#include "absl/strings/str_cat.h"

namespace strobe::internal {

OutputAccounts NewAccounts(std::span<const std::string_view> file_suffixes) {
  OutputAccounts accounts(file_suffixes.size());
  if (accounts.size() == 1) return accounts;
  for (std::size_t i = 0; i < accounts.size(); ++i)
    accounts[i].name = absl::StrCat("output ", i + 1, " (", std::string(file_suffixes[i]), ")");
  return accounts;
}

void AddExporter(OutputStats& output, const ExporterAccount& exporter) {
  output.delivered += exporter.delivered;
  for (std::size_t i = 0; i < output.drops.size(); ++i) {
    output.drops[i] += exporter.drops[i];
    output.exports_dropped += exporter.drops[i];
  }
  output.amount_dropped += exporter.amount_dropped;
  output.spool = exporter.spool;
  if (output.last_export_error.empty()) output.last_export_error = exporter.last_error;
}

void LeaveSpool(ExporterAccount& exporter) {
  exporter.spool.left += exporter.spool.waiting;
  exporter.spool.waiting = 0;
  exporter.spool.waiting_bytes = 0;
}

void AddOutputs(Stats& stats, const OutputAccounts& outputs) {
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
    for (std::size_t reason = 0; reason < sum.drops.size(); ++reason)
      sum.drops[reason] += more.drops[reason];
    sum.delivered += more.delivered;
    sum.spool.found += more.spool.found;
    sum.spool.left += more.spool.left;
    sum.spool.waiting += more.spool.waiting;
    sum.spool.waiting_bytes += more.spool.waiting_bytes;
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
