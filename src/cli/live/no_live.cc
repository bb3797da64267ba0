// RunLive of systems that have no perf events, or on which these are not tested.
#include "commands/command_line.h"
#include "live.h"

namespace strobe::internal {

int RunLive(const RecordOptions& /*recording*/, const Request& /*request*/,
            const Terminal& /*terminal*/) {
  SayError("perf events are recorded on Linux and x86-64 only");
  return kFailed;
}

}  // namespace strobe::internal
