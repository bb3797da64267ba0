// Signals sent by a thread to itself below a stack of a known depth.
#pragma once

#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <functional>

#include "../report.h"

namespace strobe::testing {

inline constexpr std::size_t kFrames = 36;
inline constexpr int kBatch = 64;      // fits the default ring
inline constexpr int kBatches = 4000;  // of each contender

// Calls body() below `depth` frames of its own.
__attribute__((noinline)) inline void Below(std::size_t depth, const std::function<void()>& body) {
  if (depth == 0) {
    body();
  } else {
    Below(depth - 1, body);
  }
  asm volatile("");  // keeps the call from being the last thing
}

// Nanoseconds a signal, over one batch.
inline double TimeBatch(int signal, int code, std::uint64_t payload) {
  siginfo_t info{};
  info.si_signo = signal;
  info.si_code = code;
  info.si_value.sival_ptr = reinterpret_cast<void*>(payload);
  const pid_t process = getpid();
  const auto thread = static_cast<pid_t>(syscall(SYS_gettid));
  const std::int64_t begin_ns = MonotonicNs();
  for (int i = 0; i < kBatch; ++i) syscall(SYS_rt_tgsigqueueinfo, process, thread, signal, &info);
  return static_cast<double>(MonotonicNs() - begin_ns) / kBatch;
}

inline void InstallEmptyHandler(int signal) {
  struct sigaction action {};
  action.sa_sigaction = [](int, siginfo_t*, void*) {};
  action.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigfillset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

}  // namespace strobe::testing
