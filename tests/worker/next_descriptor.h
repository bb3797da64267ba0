// The descriptor that the system gives next: the same before and after what leaves none open.
#pragma once

#include <unistd.h>

namespace strobe::testing {

// The least descriptor that is free.
inline int NextDescriptor() {
  const int next = dup(STDIN_FILENO);
  close(next);
  return next;
}

}  // namespace strobe::testing
