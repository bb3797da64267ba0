// What it costs to compile call frame information into tables, all of a library at once; and a
// profiler's first Start in a program that has these libraries loaded, which builds none.
#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

#include "../no_export.h"
#include "../report.h"
#include "strobe/unwind/cfi_modules.h"

namespace strobe::testing {
namespace {

constexpr int kTurns = 7;

// From a hundred megabytes of text to one; each that the machine has is measured.
constexpr const char* kLibraries[] = {"libLLVM-14.so.1", "libcrypto.so.3", "libsqlite3.so.0",
                                      "libstdc++.so.6", "libc.so.6"};

void MeasureLibrary(const std::string& name) {
  std::vector<double> ns_per_row;
  double bytes_per_byte = 0;
  double rows = 0;
  for (const Module& module : NativePlatform::Modules()) {
    if (module.path.find("/" + name.substr(0, name.find(".so") + 3)) == std::string::npos) continue;
    for (int turn = 0; turn < kTurns; ++turn) {
      internal::CfiModules modules(kNativeArchitecture, &NativePlatform::ReadMemory);
      const std::int64_t begin_ns = ThreadCpuNs();
      modules.Update(ModuleMap({module}));
      modules.BuildAll();
      const std::int64_t used_ns = ThreadCpuNs() - begin_ns;
      rows = static_cast<double>(modules.statistics().rows);
      std::size_t bytes = 0;
      for (const UnwindModules::Entry& entry : modules.Snapshot()->entries()) {
        if (entry.table != nullptr) bytes += entry.table->memory_bytes();
      }
      ns_per_row.push_back(static_cast<double>(used_ns) / std::max(rows, 1.0));
      bytes_per_byte =
          static_cast<double>(bytes) / static_cast<double>(module.limit - module.start);
    }
  }
  if (ns_per_row.empty()) return;
  Report(name, "strobe", "build a row", Median(ns_per_row), "ns");
  Report(name, "strobe", "table bytes a byte of text", bytes_per_byte, "");
  Report(name, "strobe", "rows", rows, "");
}

void MeasureStart() {
  std::vector<double> start_us;
  for (int turn = 0; turn < kTurns; ++turn) {
    BasicProfiler<NoExportTraits> profiler;
    const std::int64_t begin_ns = MonotonicNs();
    const absl::Status status = profiler.Start();
    start_us.push_back(static_cast<double>(MonotonicNs() - begin_ns) / 1000);
    if (!status.ok() || !profiler.Stop().ok()) {
      std::fprintf(stderr, "skipped: start (%s)\n", std::string(status.message()).c_str());
      return;
    }
  }
  Report("all of them loaded", "strobe", "Start", Median(start_us), "us");
}

}  // namespace
}  // namespace strobe::testing

int main() {
  for (const char* name : strobe::testing::kLibraries) {
    if (dlopen(name, RTLD_LAZY) == nullptr) {
      std::fprintf(stderr, "skipped: %s (it cannot be loaded)\n", name);
      continue;
    }
    strobe::testing::MeasureLibrary(name);
  }
  strobe::testing::MeasureStart();
}
