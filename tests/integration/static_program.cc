// A program without a dynamic linker profiles itself, without frame pointers and through its own
// copy of the C library. Linked with plain -static it has no index of its frame information.
#include <time.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <set>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "strobe/own_parts.h"

namespace {

std::int64_t ThreadCpuNs() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

}  // namespace

// Called by the C library, whose frames are between this and main.
extern "C" int CompareSlowly(const void* left, const void* right) {
  volatile std::uint64_t state = 1;
  for (int i = 0; i < 1000; ++i) state = state * 6364136223846793005 + 1;
  return *static_cast<const int*>(left) - *static_cast<const int*>(right);
}

namespace {

// In place of an encoder, counts the stacks of CompareSlowly, and those of them that go down to
// main.
std::atomic<int> all{0};
std::atomic<int> whole{0};
class StackCheck {
 public:
  static constexpr std::string_view kFileSuffix = ".none";
  static constexpr std::string_view kContentType = "application/octet-stream";
  // NOLINTNEXTLINE(readability-convert-member-functions-to-static): the contract's
  absl::StatusOr<std::string> Encode(const strobe::Profile& profile,
                                     const strobe::Symbols& symbols) {
    for (const strobe::ProfileSample& sample : profile.samples) {
      std::set<std::string> names;
      for (std::uint32_t node = sample.stack; node != 0; node = profile.stacks[node].parent) {
        const std::uint32_t function = symbols.frames[profile.stacks[node].frame].function;
        if (function < symbols.functions.size()) names.insert(symbols.functions[function].name);
      }
      if (!names.contains("CompareSlowly")) continue;
      ++all;
      if (names.contains("main")) ++whole;
    }
    return std::string();
  }
};
// What is exported is of no interest.
struct NoExporter {
  // NOLINTNEXTLINE(readability-convert-member-functions-to-static): the contract's
  absl::StatusOr<std::string> Export(const strobe::ExportRequest& /*request*/) {
    return std::string();
  }
};
struct StaticTraits : strobe::DefaultTraits {
  using Outputs = strobe::OutputList<strobe::Output<StackCheck, NoExporter>>;
};

}  // namespace

int main() {
  strobe::ProfilerOptions options;
  options.sampling.cpu_frequency_hz = 1000;
  strobe::BasicProfiler<StaticTraits> profiler(options);
  const auto registration = profiler.RegisterThread("main");
  if (!registration.status().ok() || !profiler.Start().ok()) {
    std::puts("the profiler did not start");
    return 1;
  }
  const std::int64_t begin_ns = ThreadCpuNs();
  const auto has_used = [&](std::int64_t cpu_ns) { return ThreadCpuNs() - begin_ns >= cpu_ns; };
  constexpr std::int64_t kLeastNs = 300'000'000;
  constexpr std::int64_t kPatienceNs = 60'000'000'000;  // it only guards against hanging
  while (!has_used(kLeastNs) || (all == 0 && !has_used(kPatienceNs))) {
    for (int i = 0; i < 100; ++i) {
      int values[256];
      for (int& value : values) value = std::rand();
      std::qsort(values, std::size(values), sizeof(values[0]), CompareSlowly);
    }
    static_cast<void>(profiler.Flush());
  }
  static_cast<void>(profiler.Stop());
  std::printf("%d stacks of CompareSlowly, %d of them down to main\n", all.load(), whole.load());
  return all > 0 && whole == all ? 0 : 1;
}
