// RunningTargets: the processes and threads of a recording that ran before it, and their ends.
#pragma once

#include <poll.h>

#include <cstdint>
#include <span>
#include <vector>

#include "strobe/base/visibility.h"
#include "strobe/platform/linux/descriptor.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

class RunningTargets {
 public:
  RunningTargets(std::span<const std::uint32_t> processes, std::span<const std::uint32_t> threads);

  // What a poll is given: an entry for each target, readable once it has ended.
  [[nodiscard]] std::vector<pollfd> Polled() const;
  // Takes over what a poll has said. `polled` begins with the entries of Polled, of which those of
  // targets that have ended are cleared. True if all targets have ended; false if there are none.
  bool HaveEnded(std::span<pollfd> polled);

 private:
  struct Target {
    std::uint32_t id;
    Descriptor descriptor;  // not open where the system has none of threads
    bool has_ended = false;
  };

  std::vector<Target> targets_;
};

}  // namespace internal
}  // namespace strobe
