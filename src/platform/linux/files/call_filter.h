// Whether the process has a filter of system calls. Such a filter may end the process at a call
// that its author did not expect.
#pragma once

#include "small_file.h"

namespace strobe::internal {

inline bool HasCallFilter() {
  constexpr const char* kFilterMode = "\nSeccomp:\t2";
  return ReadStart("/proc/self/status").find(kFilterMode) != std::string::npos;
}

}  // namespace strobe::internal
