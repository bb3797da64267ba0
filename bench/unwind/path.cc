#include "path.h"

#include <unistd.h>

#include <algorithm>

// The linker names the bounds of a section so.
extern "C" {
extern const char __start_strobe_bench_plain[];  // NOLINT(bugprone-reserved-identifier)
extern const char __stop_strobe_bench_plain[];   // NOLINT(bugprone-reserved-identifier)
extern const char __start_strobe_bench_fp[];     // NOLINT(bugprone-reserved-identifier)
extern const char __stop_strobe_bench_fp[];      // NOLINT(bugprone-reserved-identifier)
}

namespace strobe::testing {

std::uint64_t PlainLeaf(Path& path, std::size_t depth);
std::uint64_t FramePointerLeaf(Path& path, std::size_t depth);

std::vector<Step>& Functions(FunctionKind kind) {
  static std::vector<Step> functions[2];
  return functions[static_cast<std::size_t>(kind)];
}

Step Leaf(FunctionKind kind) { return kind == FunctionKind::kPlain ? PlainLeaf : FramePointerLeaf; }

void ChooseSteps(FunctionKind kind, std::uint64_t seed, std::span<Step> steps) {
  const std::vector<Step>& functions = Functions(kind);
  Random random(seed);
  for (Step& step : steps) step = functions[random.Below(functions.size())];
}

void EvictCache() {
  static const std::size_t bytes =
      2 * static_cast<std::size_t>(std::max(sysconf(_SC_LEVEL2_CACHE_SIZE), 1L << 20));
  static std::vector<std::uint64_t> memory(bytes / sizeof(std::uint64_t), 1);
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < memory.size(); i += 8) sum += memory[i];
  asm volatile("" : : "r"(sum));
}

CodeRange CodeOf(FunctionKind kind) {
  const bool is_plain = kind == FunctionKind::kPlain;
  return {
      reinterpret_cast<Address>(is_plain ? __start_strobe_bench_plain : __start_strobe_bench_fp),
      reinterpret_cast<Address>(is_plain ? __stop_strobe_bench_plain : __stop_strobe_bench_fp)};
}

}  // namespace strobe::testing
