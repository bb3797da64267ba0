// Question: how true is the profile? (1) A thread's CPU in it against the thread's CPU clock. (2) A
// split of 30 to 70 between two functions of a busy thread, in 20 runs: z is the deviation in units
// of the binomial's sigma. (3) The same split in a thread that works 2 ms of every 4 and then
// sleeps until a timer wakes it, at eight phases against the kernel's tick, with which the CPU
// timers may run in step: measured and printed; see "Phase lock" in the design. Takes about a
// minute and a half; an argument n makes it n times as short.
#include <sys/timerfd.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "../report.h"
#include "strobe/own_parts.h"

// The bounds of code put into a section by that name.
// NOLINTBEGIN(bugprone-reserved-identifier): the linker's names
extern "C" const char __start_thirty[], __stop_thirty[];
extern "C" const char __start_seventy[], __stop_seventy[];
// NOLINTEND(bugprone-reserved-identifier)

namespace strobe::testing {
namespace {

struct Kept {
  std::mutex mutex;
  std::vector<Profile> profiles;
};
Kept& TheKept() {
  static auto* const kept = new Kept;
  return *kept;
}

struct KeepingExporter {
  explicit KeepingExporter(const ExporterOptions& /*options*/) {}
  absl::StatusOr<std::string> Export(const ExportRequest& request) {
    const std::lock_guard lock(TheKept().mutex);
    TheKept().profiles.push_back(request.profile);
    return std::string("memory");
  }
};
struct Traits : DefaultTraits {
  using Outputs = OutputList<Output<PprofEncoder, KeepingExporter>>;
};

// What one session says of one thread, beside the thread's own clock.
struct Outcome {
  double clock_ns = 0;
  double cpu_ns = 0;       // all of it in the profile
  double residual_ns = 0;  // the part in [residual]
  double thirty_ns = 0;
  double seventy_ns = 0;
  double records = 0;
  [[nodiscard]] double share() const {
    return thirty_ns + seventy_ns > 0 ? thirty_ns / (thirty_ns + seventy_ns) : 0;
  }
};

bool IsIn(const Profile& profile, const ProfileSample& sample, const char* start,
          const char* stop) {
  for (std::uint32_t node = sample.stack; node != 0; node = profile.stacks[node].parent) {
    const Frame& frame = profile.frames[profile.stacks[node].frame];
    if (!frame.is_pseudo() && frame.address >= reinterpret_cast<Address>(start) &&
        frame.address < reinterpret_cast<Address>(stop)) {
      return true;
    }
  }
  return false;
}

bool IsResidual(const Profile& profile, const ProfileSample& sample) {
  const Frame& frame = profile.frames[profile.stacks[sample.stack].frame];
  return sample.stack != 0 && frame.is_pseudo() &&
         frame.address == static_cast<Address>(PseudoFrame::kResidual);
}

// Runs `body` on a registered thread of its own, in a session of its own.
template <class Body>
Outcome Observe(const Body& body) {
  Outcome outcome;
  TheKept().profiles.clear();
  BasicProfiler<Traits> profiler;
  if (!profiler.Start().ok()) return outcome;
  std::thread([&] {
    std::int64_t begin_ns = 0;
    {
      const Registration registration = profiler.RegisterThread("observed");
      begin_ns = ThreadCpuNs();
      body();
      outcome.clock_ns = static_cast<double>(ThreadCpuNs() - begin_ns);
    }
  }).join();
  if (!profiler.Stop().ok()) return outcome;
  outcome.records = static_cast<double>(profiler.stats().samples);
  for (const Profile& profile : TheKept().profiles) {
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      const auto ns = static_cast<double>(profile.Values(i)[1]);
      outcome.cpu_ns += ns;
      if (IsResidual(profile, profile.samples[i])) outcome.residual_ns += ns;
      if (IsIn(profile, profile.samples[i], __start_thirty, __stop_thirty)) outcome.thirty_ns += ns;
      if (IsIn(profile, profile.samples[i], __start_seventy, __stop_seventy))
        outcome.seventy_ns += ns;
    }
  }
  return outcome;
}

// The same work a step, in two functions.

__attribute__((noinline, section("thirty"))) void Thirty(int steps) {
  volatile std::uint64_t state = 1;
  for (int step = 0; step < steps; ++step) state = state * 6364136223846793005 + 1;
}
__attribute__((noinline, section("seventy"))) void Seventy(int steps) {
  volatile std::uint64_t state = 1;
  for (int step = 0; step < steps; ++step) state = state * 6364136223846793005 + 1;
}
__attribute__((noinline, section("thirty"))) void ThirtyFor(std::int64_t cpu_ns) {
  const std::int64_t end_ns = ThreadCpuNs() + cpu_ns;
  while (ThreadCpuNs() < end_ns) Thirty(200);
}
__attribute__((noinline, section("seventy"))) void SeventyFor(std::int64_t cpu_ns) {
  const std::int64_t end_ns = ThreadCpuNs() + cpu_ns;
  while (ThreadCpuNs() < end_ns) Seventy(200);
}

void MeasureClock(int divisor) {
  const Outcome outcome = Observe([&] { BurnCpu(10'000'000'000 / divisor); });
  const std::string name = "10 s of a busy thread against its clock";
  Report(name, "strobe", "deviation", 100 * (outcome.cpu_ns / outcome.clock_ns - 1), "%");
  Report(name, "strobe", "of that in [residual]", 100 * outcome.residual_ns / outcome.clock_ns,
         "%");
}

void MeasureSplit(int divisor) {
  constexpr int kRuns = 20;
  constexpr double kTruth = 0.3;
  double most = 0;
  double mean = 0;
  int beyond = 0;
  for (int run = 0; run < kRuns; ++run) {
    const Outcome outcome = Observe([&] {
      const std::int64_t end_ns = ThreadCpuNs() + 2'000'000'000 / divisor;
      while (ThreadCpuNs() < end_ns) {
        for (int i = 0; i < 20; ++i) {
          Thirty(3000);
          Seventy(7000);
        }
      }
    });
    const double z = (outcome.share() - kTruth) /
                     std::sqrt(kTruth * (1 - kTruth) / std::max(outcome.records, 1.0));
    most = std::max(most, std::abs(z));
    mean += z / kRuns;
    beyond += std::abs(z) > 3 ? 1 : 0;
  }
  const std::string name = "30 to 70 in a busy thread, 20 runs";
  Report(name, "strobe", "largest |z|", most, "sigma");
  Report(name, "strobe", "mean z", mean, "sigma");
  Report(name, "strobe", "runs beyond 3 sigma", beyond, "");
}

void MeasurePhaseLock(int divisor) {
  constexpr std::int64_t kLoopNs = 4'000'000;
  constexpr int kPhases = 8;
  for (int phase = 0; phase < kPhases; ++phase) {
    const Outcome outcome = Observe([&] {
      const int timer = timerfd_create(CLOCK_MONOTONIC, 0);
      // The tick falls on a fixed phase of the monotonic clock, the same for all eight.
      const std::int64_t first_ns =
          (MonotonicNs() / kLoopNs + 2) * kLoopNs + phase * (kLoopNs / kPhases);
      const itimerspec times{
          .it_interval = {.tv_sec = 0, .tv_nsec = kLoopNs},
          .it_value = {.tv_sec = first_ns / 1'000'000'000, .tv_nsec = first_ns % 1'000'000'000}};
      timerfd_settime(timer, TFD_TIMER_ABSTIME, &times, nullptr);
      const std::int64_t end_ns = first_ns + 4'000'000'000 / divisor;
      std::uint64_t expiries = 0;
      while (MonotonicNs() < end_ns &&
             read(timer, &expiries, sizeof(expiries)) == sizeof(expiries)) {
        ThirtyFor(600'000);
        SeventyFor(1'400'000);
      }
      close(timer);
    });
    const std::string name = "4 ms loop, phase " + std::to_string(phase) + "/8";
    Report(name, "strobe", "share of A, truth 30 %", 100 * outcome.share(), "%");
    Report(name, "strobe", "samples", outcome.records, "");
    Report(name, "strobe", "z",
           (outcome.share() - 0.3) / std::sqrt(0.21 / std::max(outcome.records, 1.0)), "sigma");
    Report(name, "strobe", "CPU seen by samples",
           100 * (outcome.cpu_ns - outcome.residual_ns) / std::max(outcome.clock_ns, 1.0), "%");
  }
}

}  // namespace
}  // namespace strobe::testing

int main(int argc, char** argv) {
  const int divisor = argc > 1 ? std::max(std::atoi(argv[1]), 1) : 1;
  strobe::testing::MeasureClock(divisor);
  strobe::testing::MeasureSplit(divisor);
  strobe::testing::MeasurePhaseLock(divisor);
  return 0;
}
