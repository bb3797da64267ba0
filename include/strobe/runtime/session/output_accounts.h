// OutputAccounts: what became of the profiles that each output was given.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "strobe/base/visibility.h"
#include "strobe/core/stats.h"
#include "strobe/export/exporter.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// One account for each output, in the order of the OutputList.
using OutputAccounts = std::vector<OutputStats>;

// Returns the accounts of outputs with these file suffixes, before any delivery.
OutputAccounts NewAccounts(std::span<const std::string_view> file_suffixes);

// Adds what the exporter of an output says of itself.
void AddExporter(OutputStats& output, const ExporterAccount& exporter);
// The session ends: the profiles in the exporter's spool are left there.
void LeaveSpool(ExporterAccount& exporter);

// Adds each output to `stats.outputs`, and their sums to `stats`.
void AddOutputs(Stats& stats, const OutputAccounts& outputs);

// Returns `status` with `name`, the output's name, in front of its message.
absl::Status OfOutput(const absl::Status& status, const std::string& name);

}  // namespace internal
}  // namespace strobe
