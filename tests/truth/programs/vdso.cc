// Calls of the kernel's functions in the vdso.
#include <sched.h>
#include <sys/time.h>

#include <ctime>

int main() {
  volatile long sum = 0;
  for (int i = 0; i < 400; ++i) {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    timeval time{};
    gettimeofday(&time, nullptr);
    sum = sum + now.tv_nsec + time.tv_usec + std::time(nullptr) + sched_getcpu();
  }
  return 0;
}
