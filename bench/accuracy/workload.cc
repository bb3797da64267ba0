#include "workload.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>

#include "../report.h"

// The bounds of code put into a section by that name.
// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
extern "C" const char __start_work_a[], __stop_work_a[];
extern "C" const char __start_work_b[], __stop_work_b[];
// NOLINTEND(bugprone-reserved-identifier)

namespace strobe::testing {
namespace {

bool IsIn(Address address, const Bounds& bounds) {
  return address >= bounds.low && address < bounds.high;
}

}  // namespace

__attribute__((noinline, section("work_a"))) void WorkInA(std::int64_t cpu_ns, Truth& truth) {
  const std::int64_t begin_ns = ThreadCpuNs();
  std::int64_t now_ns = begin_ns;
  volatile std::uint64_t state = 1;
  while (now_ns < begin_ns + cpu_ns) {
    for (int i = 0; i < 200; ++i) state = state * 6364136223846793005 + 1;
    now_ns = ThreadCpuNs();
  }
  truth.a_ns += now_ns - begin_ns;
}

__attribute__((noinline, section("work_b"))) void WorkInB(std::int64_t cpu_ns, Truth& truth) {
  const std::int64_t begin_ns = ThreadCpuNs();
  std::int64_t now_ns = begin_ns;
  volatile std::uint64_t state = 1;
  while (now_ns < begin_ns + cpu_ns) {
    for (int i = 0; i < 200; ++i) state = state * 6364136223846793005 + 1;
    now_ns = ThreadCpuNs();
  }
  truth.b_ns += now_ns - begin_ns;
}

std::pair<Bounds, Bounds> WorkBounds() {
  const auto bounds = [](const char* start, const char* stop) {
    return Bounds{reinterpret_cast<Address>(start), reinterpret_cast<Address>(stop)};
  };
  return {bounds(__start_work_a, __stop_work_a), bounds(__start_work_b, __stop_work_b)};
}
bool IsInA(Address address) { return IsIn(address, WorkBounds().first); }
bool IsInB(Address address) { return IsIn(address, WorkBounds().second); }

Truth RunLoop(const Loop& loop) {
  constexpr std::int64_t kNsPerSecond = 1'000'000'000;
  Truth truth;
  const int timer = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC);
  const std::int64_t first_ns =
      (MonotonicNs() / loop.period_ns + 2) * loop.period_ns + loop.phase_ns;
  const auto to_timespec = [](std::int64_t time_ns) {
    return timespec{.tv_sec = time_ns / kNsPerSecond, .tv_nsec = time_ns % kNsPerSecond};
  };
  const itimerspec times{.it_interval = to_timespec(loop.period_ns),
                         .it_value = to_timespec(first_ns)};
  timerfd_settime(timer, TFD_TIMER_ABSTIME, &times, nullptr);
  std::uint64_t expiries = 0;
  while (MonotonicNs() < first_ns + loop.time_ns &&
         read(timer, &expiries, sizeof(expiries)) == sizeof(expiries)) {
    WorkInA(loop.period_ns * 15 / 100, truth);
    WorkInB(loop.period_ns * 35 / 100, truth);
  }
  close(timer);
  return truth;
}

namespace {

__attribute__((noinline, section("work_a"))) void CallInA(Calls::Kind kind, int null_file) {
  timespec time{};
  char byte = 0;
  switch (kind) {
    case Calls::Kind::kGetppid: syscall(SYS_getppid); break;
    case Calls::Kind::kReadClock: clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time); break;
    case Calls::Kind::kWrite: byte = write(null_file, &byte, 1) == 1 ? 1 : 0; break;
  }
  __asm__ volatile("" : : "r"(&byte) : "memory");  // no tail call
}

__attribute__((noinline, section("work_b"))) void ComputeInB(std::int64_t rounds) {
  volatile std::uint64_t state = 1;
  for (std::int64_t i = 0; i < rounds; ++i) state = state * 6364136223846793005 + 1;
}

// The time of one `body`: the median of the means of many times. A virtual machine's clock counts
// what its host has taken from it, so a mean of all may be many times as long.
constexpr int kMeans = 51;
template <class Body>
double TimeNs(int times, const Body& body) {
  std::array<double, kMeans> means_ns{};
  for (double& mean_ns : means_ns) {
    const std::int64_t begin_ns = ThreadCpuNs();
    for (int i = 0; i < times; ++i) body();
    mean_ns = static_cast<double>(ThreadCpuNs() - begin_ns) / times;
  }
  std::nth_element(means_ns.begin(), means_ns.begin() + kMeans / 2, means_ns.end());
  return means_ns[kMeans / 2];
}

}  // namespace

Truth RunCalls(const Calls& calls) {
  const int null_file = open("/dev/null", O_WRONLY | O_CLOEXEC);
  const std::int64_t begin_ns = ThreadCpuNs();
  // Short, so that it takes no share of the time that is worth a name.
  const double round_ns = TimeNs(2, [] { ComputeInB(1000); }) / 1000;
  const auto rounds = static_cast<std::int64_t>(static_cast<double>(calls.every_ns) / round_ns);
  const std::int64_t end_ns = MonotonicNs() + calls.time_ns;
  std::int64_t count = 0;
  while (MonotonicNs() < end_ns) {  // the vDSO's: no system call
    ComputeInB(rounds);
    CallInA(calls.kind, null_file);
    ++count;
  }
  constexpr int kTimes = 40;
  const double call_ns = TimeNs(kTimes, [&] { CallInA(calls.kind, null_file); });
  const std::int64_t all_ns = ThreadCpuNs() - begin_ns;
  close(null_file);
  const auto a_ns =
      static_cast<std::int64_t>(call_ns * static_cast<double>(count + kMeans * kTimes));
  return {.a_ns = a_ns, .b_ns = all_ns - a_ns};
}

OtherProcesses::OtherProcesses(std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const int id = fork();
    if (id == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      for (volatile std::uint64_t state = 1;;) {
        const std::uint64_t last = state;
        state = last * 3 + 1;
      }
    }
    if (id > 0) ids_.push_back(id);
  }
}
OtherProcesses::~OtherProcesses() {
  for (const int id : ids_) kill(id, SIGKILL);
  for (const int id : ids_) waitpid(id, nullptr, 0);
}

}  // namespace strobe::testing
