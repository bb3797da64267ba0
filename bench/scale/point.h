// One point of an axis: what bench_scale measures in one process, so that the memory is the
// point's alone.
#pragma once

#include <time.h>
#include <unistd.h>

#include <cstddef>
#include <cstdint>
#include <string>

#include "../report.h"
#include "strobe/platform/machine.h"

namespace strobe::testing {

// How a measurement ended.
enum class Outcome : std::uint8_t {
  kRight,
  kWrong,       // the answer is not what the size says
  kImpossible,  // this machine cannot have a point of that size; the reason is on stderr
};

// What the command line says of a point.
struct Point {
  std::size_t size = 0;
  std::string path;  // a file or a directory, for the axes that need one
};

inline void ReportPoint(const std::string& metric, double value, const std::string& unit) {
  Report("point", "strobe", metric, value, unit);
}

inline std::int64_t ProcessCpuNs() { return ReadClockNs(CLOCK_PROCESS_CPUTIME_ID); }

// Reports the CPU time of the process while it does `work`.
template <class Work>
void MeasureCpu(const std::string& metric, Work&& work) {
  const std::int64_t begin_ns = ProcessCpuNs();
  work();
  ReportPoint(metric, static_cast<double>(ProcessCpuNs() - begin_ns) * 1e-9, "s");
}

// The growth of the process's resident memory since the object was made.
class ResidentGrowth {
 public:
  void Report() const { ReportPoint("resident growth", static_cast<double>(Now() - before_), "B"); }

 private:
  static std::int64_t Now() {
    return internal::ReadResidentBytes(static_cast<std::uint64_t>(getpid()));
  }

  const std::int64_t before_ = Now();
};

// The axes. Each function reports what its point costs.

// Distinct stacks of 30 frames in a period whose memory limit has room for all of them; and with
// the default limit.
Outcome MeasureStacks(const Point& point);
Outcome MeasureLimitedStacks(const Point& point);
// Sets of labels in a period, ten samples each.
Outcome MeasureLabels(const Point& point);
// Writes a pprof file of so many stacks to the path. An axis of the command reads it.
Outcome WriteProfile(const Point& point);
// Registered threads that wait.
Outcome MeasureThreads(const Point& point);
// Frames of a stack: samples that differ in their leaf only, and in all frames.
Outcome MeasureLeafChanges(const Point& point);
Outcome MeasureWholeChanges(const Point& point);
// Loaded shared libraries: the files 0.so, 1.so and so on in the directory of the path, one more
// than the size.
Outcome MeasureModules(const Point& point);
// Functions of one module, each with 1 KiB of text.
Outcome MeasureText(const Point& point);

}  // namespace strobe::testing
