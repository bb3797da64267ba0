// Question: what does it cost a registered thread to say what it is doing, and to restore that: a
// span of a trace, a zone, labels that were seen before?
#include <cstdint>
#include <cstdio>

#include "../no_export.h"
#include "benchmark/benchmark.h"
#include "strobe/scoped_labels.h"
#include "strobe/scoped_trace.h"
#include "strobe/scoped_zone.h"

namespace strobe::testing {
namespace {

void Trace(benchmark::State& state) {
  std::uint64_t id = 1;
  for (auto _ : state) {
    ++id;
    const ScopedTrace trace(id, id, id);
    benchmark::ClobberMemory();
  }
}

void NestedTrace(benchmark::State& state) {
  const ScopedTrace outer(7, 7, 7);
  Trace(state);
}

void Zone(benchmark::State& state) {
  for (auto _ : state) {
    const ScopedZone zone("parse");
    benchmark::ClobberMemory();
  }
}

void OneLabel(benchmark::State& state) {
  for (auto _ : state) {
    const ScopedLabels labels({{"endpoint", "/pay"}});
    benchmark::ClobberMemory();
  }
}

void TwoLabels(benchmark::State& state) {
  for (auto _ : state) {
    const ScopedLabels labels({{"endpoint", "/pay"}, {"shard", 7}});
    benchmark::ClobberMemory();
  }
}

int Run(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  BasicProfiler<NoExportTraits> profiler;
  const Registration registration = profiler.RegisterThread("main");
  if (!profiler.Start().ok()) return 1;
  benchmark::RegisterBenchmark("trace/strobe", Trace);
  benchmark::RegisterBenchmark("trace_in_a_trace/strobe", NestedTrace);
  benchmark::RegisterBenchmark("zone/strobe", Zone);
  benchmark::RegisterBenchmark("one_label/strobe", OneLabel);
  benchmark::RegisterBenchmark("two_labels/strobe", TwoLabels);
  benchmark::RunSpecifiedBenchmarks();
  return profiler.Stop().ok() ? 0 : 1;
}

}  // namespace
}  // namespace strobe::testing

int main(int argc, char** argv) { return strobe::testing::Run(argc, argv); }
