#include "preload_options.h"

#include <string>

#include "strobe/clock/system_clock.h"
#include "strobe/core/settings/known_variables.h"
#include "strobe/core/settings/option_rows.h"
#include "strobe/platform/native.h"

namespace strobe::internal {
namespace {

std::optional<std::string> Variable(const std::string& name) {
  std::optional<std::string> value = NativePlatform::EnvironmentVariable(name.c_str());
  return value && !value->empty() ? value : std::nullopt;
}

}  // namespace

std::optional<ProfilerOptions> PreloadOptions() {
  ProfilerOptions options;
  bool is_asked_for = false;
  for (const OptionRow& row : OptionTable()) {
    const std::string suffix(row.variable.substr(std::string_view("STROBE_").size()));
    const std::string name = "STROBE_RECORD_" + suffix;
    const std::optional<std::string> value = Variable(name);
    is_asked_for = is_asked_for || value || Variable("STROBE_" + suffix);
    if (value && !row.set(options, *value, OptionSource::kCode)) {
      NativePlatform::WriteLine(IgnoredVariable(name, *value, row.accepted, row.is_secret));
    }
  }
  // STROBE_WORKER is for a profiler of the program's own.
  if (!options.worker.enabled.is_set()) options.worker.enabled = false;
  options.threads.follow_forks = false;  // the preloaded library has its own way
  if (!is_asked_for || Variable("STROBE_ENABLED") == "0" || !*options.enabled) return std::nullopt;
  if (RecordingUntilNs(Variable(kRecordingUntilVariable)) <= SystemClock().MonotonicNs())
    return std::nullopt;
  return options;
}

}  // namespace strobe::internal
