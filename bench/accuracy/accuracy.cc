// Question: how true is the profile?
//
// (1) A thread's CPU time in it against the thread's CPU clock.
// (2) The share of one function of two, against the thread's own clock: z is the deviation in
//     standard errors of as many independent samples. Busy threads; threads that timers drive, at
//     eight phases against the kernel's tick, alone and beside other work; threads that make a
//     system call now and then; pipelines, a convoy, bursts at random times. By random instants, by
//     perf events at random times, and by timers on CPU clocks as everybody's.
//
// Takes about 35 minutes; an argument n makes it n times as short. A second one names the part that
// runs: clock, busy, loops, calls or together.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <condition_variable>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "../report.h"
#include "strobe/own_parts.h"
#include "workload.h"

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
using BenchProfiler = BasicProfiler<Traits>;

// What a profile says of one thread.
struct Seen {
  double cpu_ns = 0;  // all of it
  double residual_ns = 0;
  double a_ns = 0;
  double b_ns = 0;
  double samples = 0;
  [[nodiscard]] double share() const { return a_ns + b_ns > 0 ? a_ns / (a_ns + b_ns) : 0; }
  [[nodiscard]] double z(const Truth& truth) const {
    const double p = truth.share();
    return (share() - p) / std::sqrt(p * (1 - p) / std::max(samples, 1.0));
  }
};

// Takes the kept profiles: by thread.
std::map<std::string, Seen> TakeSeen() {
  const std::lock_guard lock(TheKept().mutex);
  std::map<std::string, Seen> seen;
  for (const Profile& profile : TheKept().profiles) {
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      Seen& one = seen[profile.Labels(i).Text(kThreadNameLabel)];
      const auto cpu_ns = static_cast<double>(profile.Values(i)[1]);
      one.samples += static_cast<double>(profile.Values(i)[0]);
      one.cpu_ns += cpu_ns;
      for (std::uint32_t node = profile.samples[i].stack; node != 0;
           node = profile.stacks[node].parent) {
        const Frame& frame = profile.frames[profile.stacks[node].frame];
        if (frame.is_pseudo()) {
          if (frame.address == static_cast<Address>(PseudoFrame::kResidual))
            one.residual_ns += cpu_ns;
        } else if (IsInA(frame.address)) {
          one.a_ns += cpu_ns;
        } else if (IsInB(frame.address)) {
          one.b_ns += cpu_ns;
        }
      }
    }
  }
  TheKept().profiles.clear();
  return seen;
}

// One observation of one thread.
struct Outcome {
  Truth truth;
  Seen seen;
  double clock_ns = 0;
};

// Runs `body` on a registered thread.
template <class Body>
std::thread Observed(BenchProfiler& profiler, const std::string& name, Outcome& outcome,
                     const Body& body) {
  return std::thread([&profiler, name, &outcome, body] {
    const Registration registration = profiler.RegisterThread(name);
    const std::int64_t begin_ns = ThreadCpuNs();
    outcome.truth = body();
    outcome.clock_ns = static_cast<double>(ThreadCpuNs() - begin_ns);
  });
}

// The threads of one session, each with its name.
using Bodies = std::map<std::string, std::function<Truth()>>;
std::map<std::string, Outcome> Observe(const SamplingOptions& sampling, const Bodies& bodies) {
  std::map<std::string, Outcome> outcomes;
  TakeSeen();
  BenchProfiler profiler({.sampling = sampling});
  if (!profiler.Start().ok()) return outcomes;
  std::vector<std::thread> threads;
  for (const auto& [name, body] : bodies)
    threads.push_back(Observed(profiler, name, outcomes[name], body));
  for (std::thread& thread : threads) thread.join();
  if (!profiler.Stop().ok()) return {};
  for (const auto& [name, seen] : TakeSeen()) {
    if (outcomes.contains(name)) outcomes[name].seen = seen;
  }
  return outcomes;
}

// The deviations of many observations.
class Deviations {
 public:
  void Add(const Outcome& outcome, double rate_hz) {
    const double z = outcome.seen.z(outcome.truth);
    square_ += z * z;
    most_ = std::max(most_, std::abs(z));
    samples_ += outcome.seen.samples;
    expected_ += outcome.clock_ns / 1e9 * rate_hz;
    cpu_ns_ += outcome.seen.cpu_ns - outcome.seen.residual_ns;
    clock_ns_ += outcome.clock_ns;
    ++count_;
  }
  void ReportAs(const std::string& name, const std::string& contender) const {
    Report(name, contender, "mean z²", square_ / std::max(count_, 1), "");
    Report(name, contender, "largest |z|", most_, "");
    Report(name, contender, "samples of those expected", 100 * samples_ / std::max(expected_, 1.0),
           "%");
    Report(name, contender, "CPU seen by samples", 100 * cpu_ns_ / std::max(clock_ns_, 1.0), "%");
  }

 private:
  double square_ = 0;
  double most_ = 0;
  double samples_ = 0;
  double expected_ = 0;
  double cpu_ns_ = 0;
  double clock_ns_ = 0;
  int count_ = 0;
};

constexpr double kRateHz = 100;
constexpr std::array kTriggers{SampleTrigger::kRandom, SampleTrigger::kPerf,
                               SampleTrigger::kTimers};
// Not held down by the budget: what is asked here is whether the samples are right.
SamplingOptions Unlimited(SampleTrigger trigger) {
  return {.cpu_frequency_hz = kRateHz, .trigger = trigger, .max_overhead = 1};
}
const char* NameOf(SampleTrigger trigger) {
  switch (trigger) {
    case SampleTrigger::kAuto: return "strobe";
    case SampleTrigger::kTimers: return "strobe_timers";
    case SampleTrigger::kRandom: return "strobe_random";
    case SampleTrigger::kPerf: return "strobe_perf";
  }
  return "strobe_other";
}

Truth BurnInBoth(std::int64_t cpu_ns) {
  Truth truth;
  const std::int64_t end_ns = ThreadCpuNs() + cpu_ns;
  while (ThreadCpuNs() < end_ns) {
    WorkInA(60'000, truth);
    WorkInB(140'000, truth);
  }
  return truth;
}

void MeasureClock(int divisor) {
  const Outcome outcome =
      Observe({}, {{"observed", [&] { return BurnInBoth(10'000'000'000 / divisor); }}})
          .at("observed");
  const std::string name = "10 s of a busy thread against its clock";
  Report(name, "strobe", "deviation", 100 * (outcome.seen.cpu_ns / outcome.clock_ns - 1), "%");
  Report(name, "strobe", "of that in [residual]", 100 * outcome.seen.residual_ns / outcome.clock_ns,
         "%");
}

void MeasureBusy(int divisor) {
  for (const auto trigger : kTriggers) {
    Deviations deviations;
    for (int run = 0; run < 20; ++run) {
      deviations.Add(Observe(Unlimited(trigger),
                             {{"observed", [&] { return BurnInBoth(2'000'000'000 / divisor); }}})
                         .at("observed"),
                     kRateHz);
    }
    deviations.ReportAs("30 to 70 in a busy thread, 20 runs", NameOf(trigger));
  }
}

// All phases of a loop, beside that many threads of its own and processes of others that compute.
void MeasureLoop(SampleTrigger trigger, double period_ms, std::size_t threads,
                 std::size_t processes, int divisor, Deviations& deviations) {
  constexpr int kPhases = 8;
  const auto period_ns = static_cast<std::int64_t>(period_ms * 1e6);
  const OtherProcesses others(processes);
  for (int phase = 0; phase < kPhases; ++phase) {
    const Loop loop{.period_ns = period_ns,
                    .phase_ns = phase * period_ns / kPhases,
                    .time_ns = 1'500'000'000 / divisor};
    std::atomic<bool> is_over{false};
    Bodies bodies{{"observed", [&] {
                     const Truth truth = RunLoop(loop);
                     is_over = true;
                     return truth;
                   }}};
    for (std::size_t i = 0; i < threads; ++i) {
      bodies["beside " + std::to_string(i)] = [&] {
        Truth truth;
        while (!is_over) WorkInB(1'000'000, truth);
        return truth;
      };
    }
    deviations.Add(Observe(Unlimited(trigger), bodies).at("observed"), kRateHz);
  }
}

void MeasureLoops(int divisor) {
  for (const auto trigger : kTriggers) {
    for (const std::size_t burners : {0, 1, 2, 8}) {
      for (const bool are_own : {false, true}) {
        if (burners == 0 && are_own) continue;
        if (trigger == SampleTrigger::kTimers && burners != 0) continue;
        Deviations all;
        for (const double period_ms : {1, 2, 4, 5, 10, 16, 20}) {
          MeasureLoop(trigger, period_ms, are_own ? burners : 0, are_own ? 0 : burners, divisor,
                      all);
        }
        std::string name = "loops of 1 to 20 ms, 8 phases";
        if (burners != 0) {
          name += ", beside " + std::to_string(burners) +
                  (are_own ? " busy threads of its own" : " other busy processes");
        }
        all.ReportAs(name, NameOf(trigger));
      }
    }
    for (int phase = 0; phase < 8; ++phase) {
      const Loop loop{.phase_ns = phase * 500'000, .time_ns = 4'000'000'000 / divisor};
      const Outcome outcome =
          Observe(Unlimited(trigger), {{"observed", [&] { return RunLoop(loop); }}}).at("observed");
      Report("4 ms loop, phase " + std::to_string(phase) + "/8", NameOf(trigger),
             "share of A, truth 30 %", 100 * outcome.seen.share(), "%");
    }
  }
}

void MeasureCalls(int divisor) {
  for (const auto trigger : {SampleTrigger::kAuto, SampleTrigger::kRandom, SampleTrigger::kPerf,
                             SampleTrigger::kTimers}) {
    for (const std::size_t burners : {0, 1, 2, 4, 8}) {
      const OtherProcesses others(burners);
      Deviations deviations;
      for (const std::int64_t every_us : {5, 20, 60, 500}) {
        for (const auto kind :
             {Calls::Kind::kGetppid, Calls::Kind::kReadClock, Calls::Kind::kWrite}) {
          const Calls calls{
              .kind = kind, .every_ns = every_us * 1000, .time_ns = 4'000'000'000 / divisor};
          deviations.Add(
              Observe(Unlimited(trigger), {{"observed", [&] { return RunCalls(calls); }}})
                  .at("observed"),
              kRateHz);
        }
      }
      deviations.ReportAs("a system call in 5 to 500 µs of work, 3 calls, beside " +
                              std::to_string(burners) + " other busy processes",
                          NameOf(trigger));
    }
  }
}

// Two threads that wake each other: each works in A and B once it is its turn.
class Pipeline {
 public:
  explicit Pipeline(std::int64_t time_ns) : end_ns_(MonotonicNs() + time_ns) {}

  Truth Run(int turn, std::int64_t a_ns, std::int64_t b_ns) {
    Truth truth;
    while (true) {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return turn_ == turn || is_over_; });
      if (is_over_ || MonotonicNs() >= end_ns_) {
        is_over_ = true;
        changed_.notify_all();
        return truth;
      }
      lock.unlock();
      WorkInA(a_ns, truth);
      WorkInB(b_ns, truth);
      lock.lock();
      turn_ = 1 - turn;
      changed_.notify_all();
    }
  }

 private:
  const std::int64_t end_ns_;
  std::mutex mutex_;
  std::condition_variable changed_;
  int turn_ = 0;
  bool is_over_ = false;
};

// Threads that queue for one lock, which they hold while they work in A.
Truth RunInConvoy(std::mutex& mutex, std::int64_t time_ns) {
  Truth truth;
  const std::int64_t end_ns = MonotonicNs() + time_ns;
  while (MonotonicNs() < end_ns) {
    {
      const std::lock_guard lock(mutex);
      WorkInA(60'000, truth);
    }
    WorkInB(140'000, truth);
  }
  return truth;
}

// Bursts of 50 to 300 µs at random times, 30 % of each in A.
Truth RunInBursts(std::int64_t time_ns, std::uint64_t seed) {
  Truth truth;
  RandomSource random(seed);
  const std::int64_t end_ns = MonotonicNs() + time_ns;
  while (MonotonicNs() < end_ns) {
    const timespec pause{.tv_sec = 0,
                         .tv_nsec = static_cast<std::int64_t>(random.Exponential(1e6))};
    nanosleep(&pause, nullptr);
    const double work_ns = 50e3 + 250e3 * random.Uniform();
    WorkInA(static_cast<std::int64_t>(0.3 * work_ns), truth);
    WorkInB(static_cast<std::int64_t>(0.7 * work_ns), truth);
  }
  return truth;
}

void MeasureTogether(int divisor) {
  constexpr int kRuns = 10;
  const std::int64_t time_ns = 3'000'000'000 / divisor;
  for (const auto trigger : kTriggers) {
    Deviations pipelines;
    Deviations convoys;
    Deviations bursts;
    for (int run = 0; run < kRuns; ++run) {
      Pipeline pipeline(time_ns);
      for (const auto& [name, outcome] :
           Observe(Unlimited(trigger),
                   {{"producer", [&] { return pipeline.Run(0, 60'000, 140'000); }},
                    {"consumer", [&] { return pipeline.Run(1, 100'000, 50'000); }}}))
        pipelines.Add(outcome, kRateHz);
      std::mutex mutex;
      Bodies bodies;
      for (int i = 0; i < 4; ++i)
        bodies["queues " + std::to_string(i)] = [&] { return RunInConvoy(mutex, time_ns); };
      for (const auto& [name, outcome] : Observe(Unlimited(trigger), bodies))
        convoys.Add(outcome, kRateHz);
      const auto seed = static_cast<std::uint64_t>(run) + 1;
      bursts.Add(
          Observe(Unlimited(trigger), {{"bursts", [&] { return RunInBursts(time_ns, seed); }}})
              .at("bursts"),
          kRateHz);
    }
    pipelines.ReportAs("producer and consumer that wake each other", NameOf(trigger));
    convoys.ReportAs("four threads that queue for a lock", NameOf(trigger));
    bursts.ReportAs("bursts of 50 to 300 µs at random times", NameOf(trigger));
  }
}

}  // namespace
}  // namespace strobe::testing

int main(int argc, char** argv) {
  const int divisor = argc > 1 ? std::max(std::atoi(argv[1]), 1) : 1;
  const std::string_view part = argc > 2 ? argv[2] : "";
  const std::pair<std::string_view, void (*)(int)> kParts[] = {
      {"clock", &strobe::testing::MeasureClock},
      {"busy", &strobe::testing::MeasureBusy},
      {"loops", &strobe::testing::MeasureLoops},
      {"calls", &strobe::testing::MeasureCalls},
      {"together", &strobe::testing::MeasureTogether}};
  for (const auto& [name, measure] : kParts) {
    if (part.empty() || part == name) measure(divisor);
  }
  return 0;
}
