// Three files from each profile: for pprof, for the Firefox Profiler, and as folded stacks.
#include <cstdint>
#include <cstdio>

#include "strobe/encode/firefox_encoder.h"
#include "strobe/encode/folded_encoder.h"
#include "strobe/own_parts.h"

namespace {

struct Traits : strobe::DefaultTraits {
  using Outputs = strobe::OutputList<strobe::Output<strobe::PprofEncoder, strobe::FileExporter>,
                                     strobe::Output<strobe::FirefoxEncoder, strobe::FileExporter>,
                                     strobe::Output<strobe::FoldedEncoder, strobe::FileExporter>>;
};

std::uint64_t CollatzSteps(std::uint64_t limit) {
  std::uint64_t steps = 0;
  for (std::uint64_t start = 1; start < limit; ++start) {
    for (std::uint64_t n = start; n != 1; ++steps) n = n % 2 == 0 ? n / 2 : 3 * n + 1;
  }
  return steps;
}

}  // namespace

int main() {
  // The folded stacks of all threads together, in CPU time.
  strobe::BasicProfiler<Traits> profiler(
      {},
      {.outputs = {
           {}, {}, {.encoder = strobe::FoldedEncoder({.value_type = "cpu", .threads = false})}}});
  auto registration = profiler.RegisterThread("main");
  strobe::BasicScopedProfiler session(profiler);

  std::printf("%llu steps\n", static_cast<unsigned long long>(CollatzSteps(5'000'000)));
}
