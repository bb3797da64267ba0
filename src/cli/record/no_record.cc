// RunUnrecorded and RecordPreloaded of systems that preload no libraries.
#include "record.h"

namespace strobe::internal {

int RunUnrecorded(const RecordOptions& /*options*/, RecordingOutput& output) {
  return output.Fail("record works on Linux only");
}

int RecordPreloaded(const RecordOptions& /*options*/, RecordingOutput& output) {
  return output.Fail("record works on Linux only");
}

}  // namespace strobe::internal
