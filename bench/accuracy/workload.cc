#include "workload.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/timerfd.h>
#include <sys/wait.h>
#include <unistd.h>

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
