#include <cstdio>

#include "record.h"

namespace strobe::internal {

int RecordPreloaded(const RecordRequest& /*request*/, const Terminal& /*terminal*/) {
  std::fputs("strobe: record works on Linux only\n", stderr);
  return 1;
}

}  // namespace strobe::internal
