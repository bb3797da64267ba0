// Profiles a small workload, and sends each period to a backend and to a directory: so whatever the
// backend has got can be compared with the files.
//
//   interop_send BACKEND DIRECTORY PERIODS PERIOD_S
//
// BACKEND is datadog, pyroscope, parca or post. Its options come from the environment. Prints the
// account of the backend's output as one line of JSON.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <optional>
#include <string>
#include <thread>

#include "strobe/export/output_list.h"
#include "strobe/http/datadog_exporter.h"
#include "strobe/http/parca_exporter.h"
#include "strobe/http/post_exporter.h"
#include "strobe/http/pyroscope_exporter.h"
#include "strobe/own_parts.h"

namespace {

struct InteropTraits : strobe::DefaultTraits {
  using Outputs = strobe::OutputList<strobe::Output<strobe::PprofEncoder, strobe::FileExporter>,
                                     strobe::Output<strobe::PprofEncoder, strobe::HttpExporter>>;
};

std::optional<strobe::HttpExporter> MakeExporter(const std::string& backend) {
  if (backend == "datadog") return strobe::DatadogExporter();
  if (backend == "pyroscope") return strobe::PyroscopeExporter();
  if (backend == "parca") return strobe::ParcaExporter();
  if (backend == "post") return strobe::PostExporter();
  return std::nullopt;
}

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

}  // namespace

int main(int argc, char** argv) {
  std::optional<strobe::HttpExporter> exporter = argc == 5 ? MakeExporter(argv[1]) : std::nullopt;
  if (!exporter) {
    std::fprintf(stderr, "usage: interop_send BACKEND DIRECTORY PERIODS PERIOD_S\n");
    return 2;
  }
  if (!exporter->status().ok()) {
    std::fprintf(stderr, "%s\n", exporter->status().ToString().c_str());
    return 2;
  }
  const int periods = std::atoi(argv[3]);
  const double period_s = std::atof(argv[4]);
  strobe::BasicProfiler<InteropTraits> profiler(
      {.sampling = {.cpu_frequency_hz = 200, .wall_frequency_hz = 20},
       .exporter = {.directory = argv[2], .period_s = 3600}},
      {.outputs = {{}, {.exporter = *exporter}}});
  if (const absl::Status status = profiler.Start(); !status.ok()) {
    std::fprintf(stderr, "%s\n", status.ToString().c_str());
    return 1;
  }
  for (int period = 0; period < periods; ++period) {
    std::thread worker([&] {
      const auto registration = profiler.RegisterThread("worker");
      const auto end = std::chrono::steady_clock::now() +
                       std::chrono::milliseconds(static_cast<int>(period_s * 1e3));
      while (std::chrono::steady_clock::now() < end) {
        BuyThings();
        SellThings();
      }
    });
    {
      const auto registration = profiler.RegisterThread("main");
      SpinFor(std::chrono::milliseconds(static_cast<int>(period_s * 300)));
      worker.join();
    }
    if (period + 1 < periods) {
      // Its error is in the account.
      static_cast<void>(profiler.Flush());
    }
  }
  static_cast<void>(profiler.Stop());
  PrintAccount(profiler.stats());
  return 0;
}
