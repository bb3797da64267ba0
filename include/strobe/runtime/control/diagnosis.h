// Diagnosis: "why do I see no samples?" in plain words.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "strobe/base/visibility.h"
#include "strobe/core/options.h"
#include "strobe/core/stats.h"
#include "strobe/core/unregistered_threads.h"
#include "strobe/platform/platform.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The facts that a diagnosis is made from.
struct DiagnosisFacts {
  ProfilerOptions options;
  std::vector<std::string> given_options;  // see GivenOptions
  Stats stats;
  absl::Status available;    // of the platform
  absl::Status last_start;   // of the last Start; OK before the first
  bool was_started = false;  // ever
  bool is_running = false;
  HandlerState handler = HandlerState::kNotInstalled;
  int signal = 0;
  UnregisteredThreads unregistered;    // of the threads that live now
  std::uint64_t threads_given_up = 0;  // of the process, see HandlerCounters
};

// One finding a line, the most decisive first; then who has set which option.
std::string Diagnose(const DiagnosisFacts& facts);

}  // namespace internal
}  // namespace strobe
