// Question: what does a registration cost a thread, from RegisterThread to its end while a session
// runs, against the bare timer beneath it?
#include <signal.h>

#include <chrono>
#include <thread>
#include <vector>

#include "../no_export.h"
#include "../report.h"

namespace strobe::testing {
namespace {

constexpr int kBatch = 32;
constexpr int kBatches = 1000;

// The calling thread's CPU clock, one signal in 10 ms of it: what the profiler sets up.
bool BareTimer() {
  sigevent event{};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = SIGURG;
  timer_t timer{};
  if (timer_create(CLOCK_THREAD_CPUTIME_ID, &event, &timer) != 0) return false;
  const itimerspec times{.it_interval = {.tv_sec = 0, .tv_nsec = 10'000'000},
                         .it_value = {.tv_sec = 0, .tv_nsec = 10'000'000}};
  const bool is_set = timer_settime(timer, 0, &times, nullptr) == 0;
  return timer_delete(timer) == 0 && is_set;
}

template <class Operation>
double TimeBatch(const Operation& operation, bool& is_good) {
  const std::int64_t begin_ns = MonotonicNs();
  for (int i = 0; i < kBatch; ++i) is_good &= operation();
  return static_cast<double>(MonotonicNs() - begin_ns) / kBatch;
}

int Run() {
  BasicProfiler<NoExportTraits> profiler({.collector = {.drain_period_ms = 1}});
  if (!profiler.Start().ok()) return 1;
  bool is_good = true;
  std::vector<double> bare;
  std::vector<double> registration;
  for (int batch = 0; batch < kBatches; ++batch) {
    bare.push_back(TimeBatch(BareTimer, is_good));
    registration.push_back(
        TimeBatch([&] { return profiler.RegisterThread("worker").status().ok(); }, is_good));
    // Lets the collector give the threads back: threads that come and go a hundred a second do the
    // same.
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
  if (!profiler.Stop().ok() || !is_good) return 1;
  Report("register and unregister", "strobe", "time", Median(registration), "ns");
  Report("register and unregister", "timer_create+settime+delete", "time", Median(bare), "ns");
  return 0;
}

}  // namespace
}  // namespace strobe::testing

int main() { return strobe::testing::Run(); }
