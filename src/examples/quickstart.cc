// quickstart [--seconds N] [--directory DIRECTORY]: profiles four threads of real work for N
// seconds (10 if not given), reads the profile's file, and prints what it says beside what the
// system says. The last line is the profile's path.
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <system_error>
#include <thread>
#include <vector>

#include "absl/strings/charconv.h"
#include "quickstart_summary.h"
#include "quickstart_workload.h"
#include "strobe/strobe.h"

namespace {

using strobe::Profiler;

constexpr std::size_t kMaxTextBytes = 12 << 20;
constexpr std::size_t kMaxMappedBytes = 8 << 20;
constexpr double kMaxSeconds = 3600;

struct Arguments {
  double seconds = 10;
  std::string directory = "quickstart-profile";
};

bool ParseArguments(int count, char** values, Arguments& arguments) {
  for (int i = 1; i < count; i += 2) {
    const std::string_view name = values[i];
    if (i + 1 == count) return false;
    const std::string_view value = values[i + 1];
    if (name == "--directory" && !value.empty()) {
      arguments.directory = value;
    } else if (name == "--seconds") {
      const auto [end, error] =
          absl::from_chars(value.data(), value.data() + value.size(), arguments.seconds);
      if (error != std::errc() || end != value.data() + value.size()) return false;
      if (!(arguments.seconds > 0 && arguments.seconds <= kMaxSeconds)) return false;
    } else {
      return false;
    }
  }
  return true;
}

std::int64_t ClockNs(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return time.tv_sec * 1'000'000'000LL + time.tv_nsec;
}

// Runs `work` on a registered thread and notes the thread's own CPU clock beside it.
class Worker {
 public:
  Worker(Profiler& profiler, std::string name, std::function<std::string()> work)
      : clock_{.name = std::move(name), .cpu_ns = 0},
        thread_([this, &profiler, work = std::move(work)] {
          const auto registration = profiler.RegisterThread(clock_.name);
          if (!registration.status().ok())
            std::fprintf(stderr, "quickstart: %s\n", registration.status().ToString().c_str());
          const std::int64_t begin_ns = ClockNs(CLOCK_THREAD_CPUTIME_ID);
          did_ = work();
          clock_.cpu_ns = ClockNs(CLOCK_THREAD_CPUTIME_ID) - begin_ns;
        }) {}
  Worker(const Worker&) = delete;
  Worker& operator=(const Worker&) = delete;

  void Join() {
    thread_.join();
    std::printf("  %-12s %s\n", clock_.name.c_str(), did_.c_str());
  }
  [[nodiscard]] const ThreadClock& clock() const { return clock_; }

 private:
  ThreadClock clock_;
  std::string did_;
  std::thread thread_;  // the last member: it uses the others
};

struct Inputs {
  std::vector<InputFile> texts;
  std::vector<InputFile> mapped;
};

// Everything between the profiler's Start and Stop. Returns what the system's clock says of each
// thread; nothing where there was no work. `inputs` is the caller's, so that freeing it does not
// fall between the main thread's clock and its profile.
std::vector<ThreadClock> RunWorkers(Profiler& profiler, double seconds, Inputs& inputs) {
  const std::int64_t main_begin_ns = ClockNs(CLOCK_THREAD_CPUTIME_ID);
  // On a disk that has not been read before, this alone may take seconds.
  inputs = {.texts = ReadTextFiles(kMaxTextBytes), .mapped = ReadMappedFiles(kMaxMappedBytes)};
  const Deadline deadline =
      std::chrono::steady_clock::now() +
      std::chrono::duration_cast<Deadline::duration>(std::chrono::duration<double>(seconds));
  if (inputs.texts.empty() || inputs.mapped.empty()) {
    std::fprintf(stderr, "quickstart: found no files to work on\n");
    return {};
  }
  std::printf("Profiling for %.4g s; what each thread did:\n", seconds);
  RoundQueue rounds;
  Worker database(profiler, "database",
                  [&] { return RunDatabase(inputs.texts, deadline, rounds); });
  Worker compression(profiler, "compression",
                     [&] { return RunCompression(inputs.mapped, deadline, rounds); });
  Worker words(profiler, "words", [&] { return RunWordCount(inputs.texts, deadline, rounds); });
  Worker bookkeeping(profiler, "bookkeeping", [&] { return RunBookkeeping(deadline, rounds); });
  std::vector<ThreadClock> clocks;
  for (Worker* worker : {&database, &compression, &words, &bookkeeping}) {
    worker->Join();
    clocks.push_back(worker->clock());
  }
  clocks.push_back({.name = "main", .cpu_ns = ClockNs(CLOCK_THREAD_CPUTIME_ID) - main_begin_ns});
  return clocks;
}

// The exporter's file under a name that stays the same from run to run.
std::string Rename(const std::string& exported, const std::string& directory) {
  const std::string path = directory + "/profile.pb.gz";
  std::error_code error;
  std::filesystem::rename(exported, path, error);
  return error ? exported : path;
}

}  // namespace

int main(int argument_count, char** argument_values) {
  Arguments arguments;
  if (!ParseArguments(argument_count, argument_values, arguments)) {
    std::fprintf(
        stderr,
        "usage: quickstart [--seconds N] [--directory DIRECTORY]   (N: above 0, at most %.0f)\n",
        kMaxSeconds);
    return 2;
  }
  // One period longer than the run, so that one file holds all of it.
  Profiler profiler({.sampling = {.wall_frequency_hz = 10},
                     .exporter = {.directory = arguments.directory, .period_s = 2 * kMaxSeconds}});
  const auto registration = profiler.RegisterThread("main");
  if (const absl::Status status = profiler.Start(); !status.ok()) {
    std::fprintf(stderr, "quickstart: %s\n%s\n", status.ToString().c_str(),
                 profiler.Diagnose().c_str());
    return 1;
  }
  Inputs inputs;
  const std::int64_t process_begin_ns = ClockNs(CLOCK_PROCESS_CPUTIME_ID);
  const std::vector<ThreadClock> clocks = RunWorkers(profiler, arguments.seconds, inputs);
  const std::int64_t process_cpu_ns = ClockNs(CLOCK_PROCESS_CPUTIME_ID) - process_begin_ns;
  const absl::Status stopped = profiler.Stop();
  if (clocks.empty()) return 1;
  if (!stopped.ok()) std::fprintf(stderr, "quickstart: %s\n", stopped.ToString().c_str());

  const strobe::Stats stats = profiler.stats();
  if (stats.last_export_path.empty()) {
    std::fprintf(stderr, "quickstart: no profile was written: %s\n",
                 stats.last_export_error.c_str());
    return 1;
  }
  const std::string path = Rename(stats.last_export_path, arguments.directory);
  const std::optional<strobe::testing::PprofProfile> profile = ReadProfile(path);
  if (!profile.has_value()) {
    std::fprintf(stderr, "quickstart: %s cannot be read\n", path.c_str());
    return 1;
  }
  const ValueSummary cpu = Summarize(*profile, "cpu");
  PrintTop(cpu, "CPU time");
  PrintTop(Summarize(*profile, "wall"), "Wall time, all threads");
  PrintThreads(clocks, cpu);
  PrintAccount(stats, process_cpu_ns);
  std::printf("\nThe profile, for pprof:\n%s\n", path.c_str());
  return stopped.ok() ? 0 : 1;
}
