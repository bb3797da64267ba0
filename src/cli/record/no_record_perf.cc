// RecordPerf of systems that have no perf events, or on which these are not tested.
#include "record.h"

namespace strobe::internal {

int RecordPerf(const RecordOptions& /*options*/, RecordingOutput& output) {
  return output.Fail("perf events are recorded on Linux and x86-64 only");
}

}  // namespace strobe::internal
