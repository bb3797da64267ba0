// A program without a dynamic linker profiles itself, without frame pointers and through its own
// copy of the C library. Linked with plain -static it has no index of its frame information.
#include <time.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <string>

#include "absl/status/statusor.h"
#include "strobe/own_parts.h"

namespace {

std::int64_t ThreadCpuNs() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

// Called by the C library, whose frames are between this and main.
int Compare(const void* left, const void* right) {
  volatile std::uint64_t state = 1;
  for (int i = 0; i < 1000; ++i) state = state * 6364136223846793005 + 1;
  return *static_cast<const int*>(left) - *static_cast<const int*>(right);
}

// Counts the CPU time of stacks that go down to main, in place of an encoder.
std::int64_t all_ns = 0;
std::int64_t whole_ns = 0;
class StackCheck {
 public:
  static constexpr std::string_view kFileSuffix = ".none";
  static constexpr std::string_view kContentType = "application/octet-stream";
  // NOLINTNEXTLINE(readability-convert-member-functions-to-static): the contract's
  absl::StatusOr<std::string> Encode(const strobe::Profile& profile,
                                     const strobe::Symbols& symbols) {
    for (std::size_t i = 0; i < profile.samples.size(); ++i) {
      bool has_main = false;
      for (std::uint32_t node = profile.samples[i].stack; node != 0;
           node = profile.stacks[node].parent) {
        const std::uint32_t function = symbols.frames[profile.stacks[node].frame].function;
        has_main |=
            function < symbols.functions.size() && symbols.functions[function].name == "main";
      }
      all_ns += profile.Values(i)[profile.default_value_type];
      whole_ns += has_main ? profile.Values(i)[profile.default_value_type] : 0;
    }
    return std::string();
  }
};
struct StaticTraits : strobe::DefaultTraits {
  using Outputs = strobe::OutputList<strobe::Output<StackCheck, strobe::FileExporter>>;
};

}  // namespace

int main() {
  strobe::ProfilerOptions options;
  options.sampling.cpu_frequency_hz = 1000;
  // What is exported is of no interest. Not even root can make a directory there.
  options.exporter.directory = "/dev/null/strobe";
  strobe::BasicProfiler<StaticTraits> profiler(options);
  const auto registration = profiler.RegisterThread("main");
  if (!registration.status().ok() || !profiler.Start().ok()) {
    std::puts("the profiler did not start");
    return 1;
  }
  const std::int64_t end_ns = ThreadCpuNs() + 300'000'000;
  while (ThreadCpuNs() < end_ns) {
    int values[256];
    for (int& value : values) value = std::rand();
    std::qsort(values, std::size(values), sizeof(values[0]), Compare);
  }
  static_cast<void>(profiler.Stop());
  std::printf("%lld ns in all, %lld ns below main\n", static_cast<long long>(all_ns),
              static_cast<long long>(whole_ns));
  return all_ns > 0 && whole_ns > all_ns * 9 / 10
             ? 0
             : 1;  // the rest: the thread's residual, and samples before main's first call
}
