// Profiles each benchmark of a Google Benchmark program, one file a benchmark. Needs Google
// Benchmark 1.7 or later.
//
//   #include <strobe/strobe_benchmark.h>
//   int main(int argc, char** argv) {
//     benchmark::Initialize(&argc, argv);
//     strobe::BenchmarkProfiler profiler;
//     benchmark::RunSpecifiedBenchmarks(&profiler);
//   }
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "benchmark/benchmark.h"
#include "strobe/named_profiles.h"

namespace strobe {

// A reporter that prints what the chosen one prints, and writes <directory>/<benchmark>.pb.gz for
// each benchmark, its repetitions and the runs by which it finds its number of iterations together.
// The file has the number of all iterations: see Iterations.
// With --benchmark_enable_random_interleaving, the first benchmark that is reported gets all of
// them. Profiled are the main thread, which runs the benchmarks' first thread, and those that
// register with profiler().
class BenchmarkProfiler : public benchmark::BenchmarkReporter {
 public:
  explicit BenchmarkProfiler(std::string directory = "strobe-profiles",
                             ProfilerOptions options = NamedProfiles::ShortWork())
      : printed_(benchmark::CreateDefaultDisplayReporter()),
        profiles_(std::move(directory), std::move(options)) {}

  BasicProfiler<NamedProfiles::Traits>& profiler() { return profiles_.profiler(); }

  bool ReportContext(const Context& context) override {
    const bool goes_on = printed_->ReportContext(context);
    if (goes_on) profiles_.WarnOnce(profiles_.Begin());
    return goes_on;
  }
  void ReportRuns(const std::vector<Run>& runs) override {
    // A benchmark with repetitions is reported twice, and a family's complexity is no benchmark.
    const bool is_new = !runs.empty() && !runs.front().report_big_o && !runs.front().report_rms &&
                        runs.front().run_name.str() != last_name_;
    if (is_new) {
      last_name_ = runs.front().run_name.str();
      profiles_.WarnOnce(profiles_.Keep(last_name_, Iterations(runs)).status());
    }
    printed_->ReportRuns(runs);
    if (is_new) profiles_.WarnOnce(profiles_.Begin());
  }
  void Finalize() override {
    profiles_.Drop();
    printed_->Finalize();
  }

 private:
  // How often the session has gone through the benchmark's loop: as often as the reported CPU time
  // of an iteration fits into the session's. The runs that find the number are not reported.
  [[nodiscard]] double Iterations(const std::vector<Run>& runs) const {
    double cpu_s = 0, iterations = 0;
    for (const Run& run : runs) {
      if (run.run_type != Run::RT_Iteration) continue;
      cpu_s += run.cpu_accumulated_time;
      iterations += static_cast<double>(run.iterations);
    }
    constexpr double kNsPerSecond = 1e9;
    const auto session_ns = static_cast<double>(profiles_.CpuTimeNs());
    return cpu_s > 0 ? session_ns * iterations / (cpu_s * kNsPerSecond) : 0;
  }

  const std::unique_ptr<benchmark::BenchmarkReporter> printed_;
  NamedProfiles profiles_;
  std::string last_name_;
};

}  // namespace strobe
