// Question: what does a sample cost while a profile with source lines is being exported? One busy
// thread is sampled at 1,000 Hz. Turns alternate: in one, another thread exports without a pause;
// in the next, no thread exports.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <thread>
#include <vector>

#include "../no_export.h"
#include "../report.h"

namespace strobe::testing {
namespace {

// A tree of calls, as deep as real programs go.
__attribute__((noinline)) std::uint64_t Descend(unsigned depth, std::uint64_t value) {
  if (depth == 0) {
    for (int i = 0; i < 2000; ++i) value = value * 6364136223846793005 + 1;
    return value;
  }
  return Descend(depth - 1, value >> 1) + depth;
}

volatile std::uint64_t result_sink;

struct Turn {
  double handler_ns = 0;  // a sample
  double exports = 0;     // a second
};

Turn MeasureTurn(BasicProfiler<NoExportTraits>& profiler, bool is_exporting, int seconds) {
  std::atomic<bool> is_over{false};
  std::int64_t exports = 0;
  std::thread exporting([&] {
    while (is_exporting && !is_over) {
      if (!profiler.Flush().ok()) std::abort();
      ++exports;
    }
  });
  const Stats begin = profiler.stats();
  std::this_thread::sleep_for(std::chrono::seconds(seconds));
  const Stats end = profiler.stats();
  is_over = true;
  exporting.join();
  return {.handler_ns = static_cast<double>(end.handler_time_ns - begin.handler_time_ns) /
                        static_cast<double>(end.samples - begin.samples),
          .exports = static_cast<double>(exports) / seconds};
}

int Run(int turns) {
  constexpr int kSeconds = 2;
  BasicProfiler<NoExportTraits> profiler({.sampling = {.cpu_frequency_hz = 1000, .max_overhead = 1},
                                          .symbols = {.mode = SymbolMode::kFull,
                                                      // So that each export reads the files again.
                                                      .memory_bytes = std::int64_t{1} << 20}});
  if (!profiler.Start().ok()) return 1;
  std::atomic<bool> is_over{false};
  std::thread busy([&] {
    const Registration registration = profiler.RegisterThread("busy");
    std::uint64_t value = 1;
    while (!is_over) value = Descend(30, value * 6364136223846793005 + 1);
    result_sink = value;
  });
  MeasureTurn(profiler, true, kSeconds);  // what is first in it costs more
  std::vector<double> quiet;
  std::vector<double> exporting;
  std::vector<double> ratios;
  std::vector<double> exports;
  for (int turn = 0; turn < turns; ++turn) {
    quiet.push_back(MeasureTurn(profiler, false, kSeconds).handler_ns);
    const Turn with = MeasureTurn(profiler, true, kSeconds);
    exporting.push_back(with.handler_ns);
    exports.push_back(with.exports);
    ratios.push_back(exporting.back() / quiet.back());
  }
  is_over = true;
  busy.join();
  const char* const name = "a busy thread at 1,000 Hz";
  Report(name, "strobe", "exports with source lines", Median(exports), "/s");
  Report(name, "strobe", "handler", Median(quiet), "ns");
  Report(name, "strobe", "handler while exporting", Median(exporting), "ns");
  Report(name, "strobe", "ratio, median of turns", Median(ratios), "");
  return profiler.Stop().ok() ? 0 : 1;
}

}  // namespace
}  // namespace strobe::testing

// bench_exporting [TURNS]
int main(int argc, char** argv) {
  // Not a number is an option of other benchmarks, which run.sh gives to all.
  const int turns = argc > 1 ? std::atoi(argv[1]) : 0;
  return strobe::testing::Run(turns > 0 ? turns : 9);
}
