// When and where an own thread gets a CPU.
#include "scheduling.h"

#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <vector>

#include "files/small_file.h"
#include "strobe/platform/linux/linux_platform.h"

namespace strobe {
namespace {

// The shortest slice that the kernel accepts.
constexpr std::uint64_t kShortSliceNs = 100'000;
// A nicer thread next to this one takes a fortieth of the time, and a slice is as much shorter in
// the scheduler's account.
constexpr int kUrgentNice = -15;
// The most CPUs that the kernel supports.
constexpr std::size_t kMaxCpus = 8192;

using CpuMask = std::array<unsigned char, kMaxCpus / 8>;

// The CPUs that the thread may use; none if the system does not tell.
CpuMask CpusOf(pid_t thread_id) {
  alignas(cpu_set_t) CpuMask mask{};
  if (sched_getaffinity(thread_id, sizeof(mask), reinterpret_cast<cpu_set_t*>(mask.data())) != 0)
    return {};
  return mask;
}
bool TakeCpus(const CpuMask& mask) {
  alignas(cpu_set_t) const CpuMask own = mask;
  return sched_setaffinity(0, sizeof(own), reinterpret_cast<const cpu_set_t*>(own.data())) == 0;
}

// That StayOn has kept the calling thread on.
constinit thread_local int kept_cpu = kAnyCpu;

}  // namespace

bool internal::TakeCpusOfProcess() {
  const CpuMask process = CpusOf(getpid());
  return process != CpuMask{} && (CpusOf(0) == process || TakeCpus(process));
}

void LinuxPlatform::WorkInBackground() {
  // Not SCHED_IDLE: next to busy threads such a thread may never run, while it holds a lock that
  // the collector waits for.
  const sched_param none{};
  if (sched_getscheduler(0) == SCHED_OTHER) sched_setscheduler(0, SCHED_BATCH, &none);
}

bool LinuxPlatform::WakeInTime() {
  prctl(PR_SET_TIMERSLACK, 1);
  // A short slice lets the scheduler prefer this thread when it wakes. The structure is
  // sched_setattr's, first version; the kernel takes a slice for SCHED_OTHER since 6.12.
  struct {
    std::uint32_t size;
    std::uint32_t policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime_ns;
    std::uint64_t deadline_ns;
    std::uint64_t period_ns;
  } attributes{};
  static_assert(sizeof(attributes) == 48);
  if ((sched_getscheduler(0) & ~SCHED_RESET_ON_FORK) != SCHED_OTHER) return false;
  attributes.size = sizeof(attributes);
  attributes.nice = getpriority(PRIO_PROCESS, 0);
  attributes.runtime_ns = kShortSliceNs;
  // Older kernels take the call, and not the slice.
  if (syscall(SYS_sched_setattr, 0, &attributes, 0U) != 0 ||
      syscall(SYS_sched_getattr, 0, &attributes, sizeof(attributes), 0U) != 0 ||
      attributes.runtime_ns != kShortSliceNs)
    return false;
  // Next to a thread that is about to end its slice, a short slice is not short enough, unless it
  // counts for less. Most programs may not ask for that.
  attributes.nice = std::min(attributes.nice, kUrgentNice);
  syscall(SYS_sched_setattr, 0, &attributes, 0U);
  return true;
}

bool LinuxPlatform::StayOn(int cpu) {
  // Its user may have moved the thread meanwhile.
  if (cpu == kept_cpu && (cpu == kAnyCpu || sched_getcpu() == cpu)) return true;
  if (cpu == kAnyCpu) {
    if (!internal::TakeCpusOfProcess()) return false;
  } else {
    CpuMask mask{};
    const auto place = static_cast<std::size_t>(cpu);
    if (place >= kMaxCpus) return false;
    mask[place / 8] = static_cast<unsigned char>(1U << place % 8);
    if (!TakeCpus(mask)) return false;
  }
  kept_cpu = cpu;
  return true;
}

int LinuxPlatform::CurrentCpu() { return sched_getcpu(); }

std::vector<int> LinuxPlatform::Cpus() {
  const CpuMask mask = CpusOf(getpid());
  std::vector<int> cpus;
  for (std::size_t i = 0; i < kMaxCpus; ++i) {
    if ((mask[i / 8] >> i % 8 & 1) != 0) cpus.push_back(static_cast<int>(i));
  }
  return cpus;
}

// The fourth field of /proc/loadavg begins with the number of threads that run or could.
bool LinuxPlatform::IsSaturated() {
  static const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  const std::string text = internal::ReadStart("/proc/loadavg");
  std::size_t at = 0;
  for (int field = 1; field < 4; ++field) {
    at = text.find(' ', at);
    if (at == std::string::npos) return false;
    ++at;
  }
  return std::strtol(text.c_str() + at, nullptr, 10) - 1 > cpus;
}

}  // namespace strobe
