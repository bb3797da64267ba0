// An OutputThreads that hangs until the test says that it has ended.
#pragma once

#include <cstdint>

#include "strobe/core/stats.h"

namespace strobe::testing {

struct HangingWorker {
  void AddTo(Stats& stats) const { stats.outputs.emplace_back().exports = exports; }
  [[nodiscard]] bool HasEnded() const { return has_ended; }
  std::uint64_t exports = 1;
  bool has_ended = false;
};

}  // namespace strobe::testing
