#include "path.h"

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

CodeRange CodeOf(FunctionKind kind) {
  const bool is_plain = kind == FunctionKind::kPlain;
  return {reinterpret_cast<Address>(is_plain ? __start_strobe_bench_plain : __start_strobe_bench_fp),
          reinterpret_cast<Address>(is_plain ? __stop_strobe_bench_plain : __stop_strobe_bench_fp)};
}

}  // namespace strobe::testing
