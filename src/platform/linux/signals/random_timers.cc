// Random timers by perf's task-clock event: a high-resolution timer of the kernel that runs while
// its thread runs, and so expires between two ticks too. See perf_event_open(2).
#include <fcntl.h>
#include <linux/perf_event.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdint>
#include <string>

#include "../files/call_filter.h"
#include "strobe/platform/linux/linux_platform.h"
#include "strobe/platform/linux/own_files.h"
#include "thread_files.h"

namespace strobe {
namespace {

// What a RandomTimer can hold.
constexpr std::int64_t kLongestMeanNs = std::int64_t{UINT32_MAX} * 1000;

// Opens the event, not yet enabled. -1 if the system refuses it.
int OpenEvent(std::uint64_t thread_id, std::int64_t first_ns) {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_TASK_CLOCK;
  attributes.sample_period = static_cast<std::uint64_t>(first_ns);
  attributes.disabled = 1;
  // With exclude_kernel more systems would allow the event, but it would not expire in system
  // calls: their time would be divided among other functions.
  constexpr int kAnyCpu = -1;
  constexpr int kNoGroup = -1;
  return static_cast<int>(syscall(SYS_perf_event_open, &attributes, static_cast<pid_t>(thread_id),
                                  kAnyCpu, kNoGroup, PERF_FLAG_FD_CLOEXEC));
}

// Has the thread interrupted by `signal` at the next expiry. The event stops then, until the
// handler has set the next one. If it went on, a short time between two expiries would be its
// period until the handler runs. In a virtual machine the interrupt takes as long as the shortest
// period, 10 µs: the thread never reaches its handler, and its CPU is lost to all.
bool SendTo(int file, std::uint64_t thread_id, int signal) {
  const f_owner_ex owner{.type = F_OWNER_TID, .pid = static_cast<pid_t>(thread_id)};
  return fcntl(file, F_SETOWN_EX, &owner) == 0 && fcntl(file, F_SETSIG, signal) == 0 &&
         fcntl(file, F_SETFL, O_ASYNC) == 0 && ioctl(file, PERF_EVENT_IOC_REFRESH, 1) == 0;
}

void Stop(internal::RandomTimer& timer) {
  const int event = timer.event.exchange(-1, std::memory_order_acq_rel);
  if (event < 0) return;
  // A fork's child may hold the event open. The child itself keeps none.
  if (const int file = internal::KeptThreadFile(event); file >= 0)
    ioctl(file, PERF_EVENT_IOC_DISABLE, 0);
  internal::DropThreadFile(event);
}

bool Start(internal::RandomTimer& timer, std::uint64_t thread_id, int signal) {
  if (!internal::SharesFiles(thread_id)) return false;  // the handler could not set the next expiry
  internal::KnownFile file = internal::KnownFile::OfEvent(OpenEvent(thread_id, timer.NextGapNs()));
  if (file.number < 0) return false;
  const int event = internal::KeepThreadFile(file);
  if (event < 0) {
    file.Close();
    return false;
  }
  timer.event.store(event, std::memory_order_release);
  if (SendTo(internal::KeptThreadFile(event), thread_id, signal)) return true;
  Stop(timer);
  return false;
}

}  // namespace

// The thread's handler uses the event, so its number is one of the program's.
bool LinuxPlatform::StartRandomTimer(internal::RandomTimer& timer, std::uint64_t thread_id,
                                     std::uint8_t provider, std::int64_t mean_ns,
                                     std::uint64_t seed, int signal) {
  // An event's signal is not a timer's, so an exec does not discard a pending one: its default
  // action must be to do nothing. In place of a real-time signal that does not fit into the queue,
  // the kernel would send SIGIO, which ends the process.
  if (signal != SIGURG || mean_ns > kLongestMeanNs || internal::HasCallFilter()) return false;
  timer.provider.store(provider, std::memory_order_relaxed);
  timer.mean_us.store(static_cast<std::uint32_t>(mean_ns / 1000), std::memory_order_relaxed);
  timer.draws.store(static_cast<std::uint32_t>(seed), std::memory_order_relaxed);
  // The system's first event of a task waits until all CPUs know of events, for up to 20 ms. Its
  // number is taken meanwhile, and a shell's dup2 to that number fails. So where the calling thread
  // has files of its own, the first one is among them, and the program's takes microseconds.
  const bool has_own_files = internal::FilesOfThread::Program() != nullptr;
  const internal::Descriptor first(
      has_own_files ? OpenEvent(static_cast<std::uint64_t>(gettid()), mean_ns) : -1);
  bool is_started = false;
  internal::WithProgramFiles([&] { is_started = Start(timer, thread_id, signal); });
  return is_started;
}

void LinuxPlatform::StopRandomTimer(internal::RandomTimer& timer) {
  if (timer.event.load(std::memory_order_acquire) < 0) return;
  internal::WithProgramFiles([&timer] { Stop(timer); });
}

}  // namespace strobe
