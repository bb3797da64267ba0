// RecordPerf of systems that have no perf events, or whose stacks ProcessTable does not unwind.
#include "record.h"

namespace strobe::internal {

int RecordPerf(const RecordOptions& /*options*/, RecordingOutput& output) {
  return output.Fail("perf events are recorded on Linux and x86-64 only");
}

}  // namespace strobe::internal
