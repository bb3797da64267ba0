// RecordPerf and AddEvents of systems that have no perf events, or on which these are not tested.
#include "commands/command_line.h"
#include "record.h"

namespace strobe::internal {

void AddEvents(CommandLine& /*line*/) {}

int RecordPerf(const RecordOptions& /*options*/, RecordingOutput& output) {
  return output.Fail("perf events are recorded on Linux and x86-64 only");
}

}  // namespace strobe::internal
