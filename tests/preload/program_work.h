// What the programs that are recorded, and know nothing of Strobe, share.
#pragma once

#include <sys/wait.h>
#include <time.h>

namespace strobe::testing {

// What the calling thread has used.
inline double ThreadCpuS() {
  timespec used{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  return static_cast<double>(used.tv_sec) + 1e-9 * static_cast<double>(used.tv_nsec);
}

// Waits for the child, and returns its exit status.
inline int StatusOf(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WEXITSTATUS(status);
}

}  // namespace strobe::testing
