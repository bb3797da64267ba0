// HasFewFiles: whether this process may open few files, all of which the program may need.
#pragma once

#include <sys/resource.h>

namespace strobe::internal {

inline constexpr rlim_t kFewFiles = 64;

// Then the profiler keeps no file open that it can do without.
inline bool HasFewFiles() {
  rlimit limit{};
  return getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < kFewFiles;
}

}  // namespace strobe::internal
