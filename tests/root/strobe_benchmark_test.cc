// Benchmarks that are profiled.
#include "strobe/strobe_benchmark.h"

#include <cstdint>

namespace {

volatile std::uint64_t sink = 0;

[[gnu::noinline]] void Add(std::int64_t times) {
  for (std::int64_t i = 0; i < times; ++i) sink = sink + 1;
}
[[gnu::noinline]] void Multiply() {
  for (int i = 0; i < 10'000; ++i) sink = sink * 31 + 1;
}

void BM_Add(benchmark::State& state) {
  for (auto _ : state) Add(state.range(0));
}
BENCHMARK(BM_Add)->Arg(10'000)->Repetitions(2);
void BM_Multiply(benchmark::State& state) {
  for (auto _ : state) Multiply();
}
BENCHMARK(BM_Multiply);

}  // namespace

int main(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  strobe::BenchmarkProfiler profiler("measured", {.sampling = {.max_overhead = 1}});
  benchmark::RunSpecifiedBenchmarks(&profiler);
}
