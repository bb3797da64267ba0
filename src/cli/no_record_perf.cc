// RecordPerf of systems that have no perf events, or whose stacks ProcessTable does not unwind.
#include <utility>

#include "absl/status/status.h"
#include "record.h"

namespace strobe::internal {

int RecordPerf(const RecordOptions& /*options*/, const RecordHost& host) {
  host.deliver(absl::UnimplementedError("perf events are recorded on Linux and x86-64 only"), 0);
  return 1;
}

}  // namespace strobe::internal
