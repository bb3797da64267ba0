// A thread that a timer drives through A and B, beside a profiler; see accuracy_peers.py.
//
//   loop none|strobe|gperftools PHASE_NS TIME_NS OUTPUT
//
// Prints the true share of A in percent, and the addresses of A and of B. `strobe` and `gperftools`
// leave their profile in OUTPUT.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "../accuracy/workload.h"
#include "strobe/own_parts.h"
#ifdef STROBE_BENCH_GPERFTOOLS
#include <gperftools/profiler.h>
#endif

namespace strobe::testing {
namespace {

// Writes the address of each sample's innermost frame that is in A or B, in gperftools' form.
std::string output_path;
class AddressEncoder {
 public:
  static constexpr std::string_view kFileSuffix = ".addresses";
  static constexpr std::string_view kContentType = "text/plain";
  absl::StatusOr<std::string> Encode(const Profile& profile, const Symbols& /*symbols*/) {
    std::FILE* file = std::fopen(output_path.c_str(), "a");
    if (file == nullptr) return absl::InternalError(output_path);
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      for (std::uint32_t node = profile.samples[i].stack; node != 0;
           node = profile.stacks[node].parent) {
        const Frame& frame = profile.frames[profile.stacks[node].frame];
        if (frame.is_pseudo() || !(IsInA(frame.address) || IsInB(frame.address))) continue;
        std::fprintf(file, "%c %lld\n", IsInA(frame.address) ? 'A' : 'B',
                     static_cast<long long>(profile.Values(i)[0]));
        break;
      }
    }
    std::fclose(file);
    return std::string();
  }
};
struct NullExporter {
  explicit NullExporter(const ExporterOptions& /*options*/) {}
  absl::StatusOr<std::string> Export(const ExportRequest& /*request*/) {
    return std::string("none");
  }
};
struct Traits : DefaultTraits {
  using Outputs = OutputList<Output<AddressEncoder, NullExporter>>;
};

Truth RunProfiled(const std::string& profiler, const Loop& loop) {
  if (profiler == "strobe") {
    BasicProfiler<Traits> ours({.sampling = {.cpu_frequency_hz = 100, .max_overhead = 1}});
    if (!ours.Start().ok()) std::abort();
    Truth truth;
    {
      const Registration registration = ours.RegisterThread("loop");
      truth = RunLoop(loop);
    }
    if (!ours.Stop().ok()) std::abort();
    return truth;
  }
#ifdef STROBE_BENCH_GPERFTOOLS
  if (profiler == "gperftools") {
    if (ProfilerStart(output_path.c_str()) == 0) std::abort();
    const Truth truth = RunLoop(loop);
    ProfilerStop();
    return truth;
  }
#endif
  return RunLoop(loop);
}

int Main(char** argv) {
  output_path = argv[4];
  const Truth truth =
      RunProfiled(argv[1], {.phase_ns = std::atoll(argv[2]), .time_ns = std::atoll(argv[3])});
  const auto [a, b] = WorkBounds();
  std::printf("%.6f %llx %llx %llx %llx\n", 100 * truth.share(),
              static_cast<unsigned long long>(a.low), static_cast<unsigned long long>(a.high),
              static_cast<unsigned long long>(b.low), static_cast<unsigned long long>(b.high));
  return 0;
}

}  // namespace
}  // namespace strobe::testing

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  return strobe::testing::Main(argv);
}
