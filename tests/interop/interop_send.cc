// Profiles a small workload, and sends each period to a backend and to a directory: so whatever the
// backend has got can be compared with the files.
//
//   interop_send BACKEND DIRECTORY PERIODS PERIOD_S
//
// BACKEND is datadog, otlp, parca, post or pyroscope. Its options come from the environment. Prints
// the account of the backend's output as one line of JSON.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <utility>

#include "strobe/encode/otlp_encoder.h"
#include "strobe/export/output_list.h"
#include "strobe/http/datadog_exporter.h"
#include "strobe/http/otlp_exporter.h"
#include "strobe/http/parca_exporter.h"
#include "strobe/http/post_exporter.h"
#include "strobe/http/pyroscope_exporter.h"
#include "strobe/own_parts.h"
#include "strobe/scoped_labels.h"
#include "strobe/scoped_trace.h"

namespace {

struct InteropTraits : strobe::DefaultTraits {
  using Outputs = strobe::OutputList<strobe::Output<strobe::PprofEncoder, strobe::FileExporter>,
                                     strobe::Output<strobe::PprofEncoder, strobe::HttpExporter>>;
};

struct Plan {
  std::string directory;
  int periods = 0;
  std::chrono::milliseconds period{};
  bool timestamps = false;
};

volatile std::uint64_t sink = 1;

[[gnu::noinline]] void SpinFor(std::chrono::milliseconds time) {
  const auto end = std::chrono::steady_clock::now() + time;
  while (std::chrono::steady_clock::now() < end) {
    for (int i = 0; i < 1000; ++i) sink = sink * 6364136223846793005 + 1;
  }
}
[[gnu::noinline]] void BuyThings() { SpinFor(std::chrono::milliseconds(3)); }
[[gnu::noinline]] void SellThings() { SpinFor(std::chrono::milliseconds(1)); }

void PrintAccount(const strobe::Stats& stats) {
  const strobe::OutputStats& output = stats.outputs[1];
  std::printf(
      "{\"periods\": %llu, \"exports\": %llu, \"failed\": %llu, \"dropped\": %llu, "
      "\"delivered\": %llu, \"found\": %llu, \"left\": %llu, \"waiting\": %llu}\n",
      static_cast<unsigned long long>(stats.outputs[0].exports),
      static_cast<unsigned long long>(output.exports),
      static_cast<unsigned long long>(output.exports_failed),
      static_cast<unsigned long long>(output.exports_dropped),
      static_cast<unsigned long long>(output.delivered),
      static_cast<unsigned long long>(output.spool.found),
      static_cast<unsigned long long>(output.spool.left),
      static_cast<unsigned long long>(output.spool.waiting));
  std::fprintf(stderr, "last error: %s\nlast path: %s\n", output.last_export_error.c_str(),
               output.last_export_path.c_str());
}

// The worker works in a span for each kind of goods; the main thread has neither span nor label.
template <class Profiler>
void RunPeriod(Profiler& profiler, std::chrono::milliseconds period) {
  std::thread worker([&] {
    const auto registration = profiler.RegisterThread("worker");
    const auto end = std::chrono::steady_clock::now() + period;
    while (std::chrono::steady_clock::now() < end) {
      const strobe::ScopedTrace trace(/*trace_id=*/7, /*span_id=*/71, /*local_root_span_id=*/70);
      const strobe::ScopedLabels labels({{"goods", "tea"}});
      BuyThings();
      SellThings();
    }
  });
  const auto registration = profiler.RegisterThread("main");
  SpinFor(period / 3);
  worker.join();
}

int Send(strobe::HttpExporter exporter, const Plan& plan) {
  if (!exporter.status().ok()) {
    std::fprintf(stderr, "%s\n", exporter.status().ToString().c_str());
    return 2;
  }
  strobe::BasicProfiler<InteropTraits> profiler(
      {.sampling = {.cpu_frequency_hz = 200,
                    .wall_frequency_hz = 20,
                    .timestamps = plan.timestamps},
       .exporter = {.directory = plan.directory, .period_s = 3600}},
      {.outputs = {{}, {.exporter = std::move(exporter)}}});
  if (const absl::Status status = profiler.Start(); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  for (int period = 0; period < plan.periods; ++period) {
    RunPeriod(profiler, plan.period);
    // Its error is in the account. Stop exports the last period.
    if (period + 1 < plan.periods) static_cast<void>(profiler.Flush());
  }
  static_cast<void>(profiler.Stop());
  PrintAccount(profiler.stats());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string backend = argc == 5 ? argv[1] : "";
  Plan plan;
  if (argc == 5) {
    plan = {.directory = argv[2],
            .periods = std::atoi(argv[3]),
            .period = std::chrono::milliseconds(static_cast<int>(std::atof(argv[4]) * 1e3)),
            .timestamps = backend == "datadog"};
  }
  if (backend == "datadog") return Send(strobe::DatadogExporter(), plan);
  if (backend == "otlp") {
    return Send(strobe::OtlpExporter(), plan);
  }
  if (backend == "parca") return Send(strobe::ParcaExporter(), plan);
  if (backend == "post") return Send(strobe::PostExporter(), plan);
  if (backend == "pyroscope") return Send(strobe::PyroscopeExporter(), plan);
  std::fprintf(stderr, "usage: interop_send BACKEND DIRECTORY PERIODS PERIOD_S\n");
  return 2;
}
