// How true the shares are for a thread that a timer drives: it wakes every 4 ms, works for 0.6 ms
// in A and for 1.4 ms in B, and waits again, at eight phases against the system's tick. z is the
// deviation in standard errors of as many independent samples.
//
// The work is measured by the steady clock, because Wine's clocks of threads advance by 10 ms.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "../report.h"
#include "strobe/own_parts.h"

namespace strobe::testing {

__attribute__((noinline)) std::int64_t WorkInA(std::int64_t time_ns) {
  const std::int64_t begin_ns = MonotonicNs();
  volatile std::uint64_t state = 1;
  while (MonotonicNs() < begin_ns + time_ns) {
    for (int i = 0; i < 200; ++i) state = state * 6364136223846793005 + 1;
  }
  return MonotonicNs() - begin_ns;
}
__attribute__((noinline)) std::int64_t WorkInB(std::int64_t time_ns) {
  const std::int64_t begin_ns = MonotonicNs();
  volatile std::uint64_t state = 3;
  while (MonotonicNs() < begin_ns + time_ns) {
    for (int i = 0; i < 200; ++i) state = state * 6364136223846793005 + 3;
  }
  return MonotonicNs() - begin_ns;
}

namespace {

struct KeptProfile {
  Profile profile;
  Symbols symbols;
};
struct Kept {
  std::mutex mutex;
  std::vector<KeptProfile> profiles;
};
Kept& TheKept() {
  static auto* const kept = new Kept;
  return *kept;
}
class KeepingEncoder {
 public:
  static constexpr std::string_view kFileSuffix = ".kept";
  static constexpr std::string_view kContentType = "application/octet-stream";
  absl::StatusOr<std::string> Encode(const Profile& profile, const Symbols& symbols) {
    const std::lock_guard lock(TheKept().mutex);
    TheKept().profiles.push_back({profile, symbols});
    return std::string();
  }
};
struct NullExporter {
  explicit NullExporter(const ExporterOptions& /*options*/) {}
  absl::StatusOr<std::string> Export(const ExportRequest& /*request*/) {
    return std::string("memory");
  }
};
struct Traits : DefaultTraits {
  using Outputs = OutputList<Output<KeepingEncoder, NullExporter>>;
};

struct Seen {
  double samples_in_a = 0;
  double samples_in_b = 0;
  double samples_elsewhere = 0;
  double cpu_ns = 0;
};

Seen TakeSeen() {
  const std::lock_guard lock(TheKept().mutex);
  Seen seen;
  for (const auto& [profile, symbols] : TheKept().profiles) {
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      const auto count = static_cast<double>(profile.Values(i)[0]);
      seen.cpu_ns += static_cast<double>(profile.Values(i)[1]);
      double* place = &seen.samples_elsewhere;
      for (std::uint32_t node = profile.samples[i].stack; node != 0;
           node = profile.stacks[node].parent) {
        const std::uint32_t function = symbols.frames[profile.stacks[node].frame].function;
        if (function == FrameSymbols::kNone) continue;
        const std::string& name = symbols.functions[function].name;
        if (name.find("WorkInA") != std::string::npos) place = &seen.samples_in_a;
        if (name.find("WorkInB") != std::string::npos) place = &seen.samples_in_b;
      }
      *place += count;
    }
  }
  TheKept().profiles.clear();
  return seen;
}

// Returns the true share of A.
double RunLoop(std::int64_t phase_ns, std::int64_t time_ns) {
  constexpr std::int64_t kPeriodNs = 4'000'000;
  const std::int64_t first_ns = (MonotonicNs() / kPeriodNs + 2) * kPeriodNs + phase_ns;
  double a_ns = 0;
  double b_ns = 0;
  for (std::int64_t next_ns = first_ns; next_ns < first_ns + time_ns; next_ns += kPeriodNs) {
    if (const std::int64_t now_ns = MonotonicNs(); now_ns < next_ns)
      NativePlatform::SleepNs(next_ns - now_ns);
    a_ns += static_cast<double>(WorkInA(600'000));
    b_ns += static_cast<double>(WorkInB(1'400'000));
  }
  return a_ns / (a_ns + b_ns);
}

int Main(int divisor) {
  constexpr int kPhases = 8;
  double square = 0;
  double most = 0;
  for (int phase = 0; phase < kPhases; ++phase) {
    double truth = 0;
    BasicProfiler<Traits> profiler({.sampling = {.cpu_frequency_hz = 200, .max_overhead = 1}});
    if (!profiler.Start().ok()) std::abort();
    std::thread([&] {
      const Registration registration = profiler.RegisterThread("loop");
      truth = RunLoop(phase * 500'000, 16'000'000'000 / divisor);
    }).join();
    if (!profiler.Stop().ok()) std::abort();
    const Seen seen = TakeSeen();
    const double samples = seen.samples_in_a + seen.samples_in_b;
    const double share = samples > 0 ? seen.samples_in_a / samples : 0;
    const double z = (share - truth) / std::sqrt(truth * (1 - truth) / std::max(samples, 1.0));
    square += z * z;
    most = std::max(most, std::abs(z));
    const std::string name = "4 ms loop, phase " + std::to_string(phase) + "/8";
    Report(name, "strobe", "share of A, truth", 100 * truth, "%");
    Report(name, "strobe", "share of A", 100 * share, "%");
    Report(name, "strobe", "samples in A and B", samples, "");
    Report(name, "strobe", "samples elsewhere", seen.samples_elsewhere, "");
  }
  Report("4 ms loop, 8 phases", "strobe", "mean z²", square / kPhases, "");
  Report("4 ms loop, 8 phases", "strobe", "largest |z|", most, "");
  return 0;
}

}  // namespace
}  // namespace strobe::testing

int main(int argc, char** argv) {
  return strobe::testing::Main(argc > 1 ? std::max(std::atoi(argv[1]), 1) : 1);
}
