// A provider, an unwinder and an exporter of one's own, each a plain class that fits a concept, put
// together by a traits type.
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <string>
#include <string_view>
#include <thread>
#include <utility>

#include "strobe/own_parts.h"

namespace {

std::atomic<std::int64_t> queued_jobs{0};

// What threads do while jobs wait: the depth of the program's queue, times how long it stood there.
class QueueDepthProvider {
 public:
  static constexpr std::array<strobe::ValueType, 1> kValueTypes{
      strobe::ValueType{"queued", "job-nanoseconds"}};
  struct ThreadState {
    std::int64_t polled_ns = 0;  // 0 before the first poll
  };

  explicit QueueDepthProvider(const strobe::SamplingOptions& /*options*/) {}
  [[nodiscard]] bool enabled() const { return true; }
  [[nodiscard]] std::int64_t poll_period_ns() const { return 20'000'000; }
  // The weight of the stack that the thread is at. Without a weight no stack is taken.
  std::int64_t Poll(strobe::SampleTarget& /*thread*/, ThreadState& state, std::int64_t now_ns) {
    const std::int64_t since_ns = std::exchange(state.polled_ns, now_ns);
    if (since_ns == 0) return 0;
    return queued_jobs.load(std::memory_order_relaxed) * (now_ns - since_ns);
  }
};
static_assert(strobe::PolledProvider<QueueDepthProvider>);

// At most eight frames, along the chain of frame pointers: each points to its caller's, and the
// return address lies above it.
class ShortUnwinder {
 public:
  template <strobe::StackMemory Memory>
  strobe::WalkResult Unwind(const strobe::NativeRegisters& registers, const Memory& memory,
                            std::span<strobe::Address> output) const noexcept {
    const std::size_t limit = output.size() < kFrames ? output.size() : kFrames;
    if (limit == 0) return {.count = 0, .end = strobe::StackEnd::kTruncated};
    output[0] = registers.pc;
    strobe::Address frame = registers.fp;
    for (std::size_t count = 1;; ++count) {
      strobe::Address next = 0;
      strobe::Address return_address = 0;
      if (!memory.ReadWord(frame, next) || !memory.ReadWord(frame + 8, return_address))
        return {count, strobe::StackEnd::kBroken};
      if (return_address == 0) return {count, strobe::StackEnd::kComplete};
      if (count == limit) return {count, strobe::StackEnd::kTruncated};
      output[count] = return_address - 1;  // inside the call
      if (next == 0) return {count + 1, strobe::StackEnd::kComplete};
      if (next <= frame) return {count + 1, strobe::StackEnd::kBroken};
      frame = next;
    }
  }

 private:
  static constexpr std::size_t kFrames = 8;
};
static_assert(strobe::Unwinder<ShortUnwinder>);

// Prints each profile's totals in place of writing it anywhere.
class PrintingExporter {
 public:
  explicit PrintingExporter(const strobe::ExporterOptions& /*options*/) {}

  absl::StatusOr<std::string> Export(const strobe::ExportRequest& request) {
    const strobe::Profile& profile = request.profile;
    std::printf("exported: %zu bytes, %zu stacks of %zu threads\n", request.bytes.size(),
                profile.samples.size(), profile.threads.size());
    for (std::size_t type = 0; type < profile.value_types.size(); ++type) {
      std::int64_t total = 0;
      for (std::size_t sample = 0; sample < profile.samples.size(); ++sample)
        total += profile.Values(sample)[type];
      std::printf("  %-8s %lld %s\n", std::string(profile.value_types[type].type).c_str(),
                  static_cast<long long>(total),
                  std::string(profile.value_types[type].unit).c_str());
    }
    return std::string("standard output");
  }
};
static_assert(strobe::Exporter<PrintingExporter>);

struct OwnTraits : strobe::DefaultTraits {
  using Unwinder = ShortUnwinder;
  using Providers = strobe::ProviderList<strobe::CpuTimeProvider, QueueDepthProvider>;
  using Outputs = strobe::OutputList<strobe::Output<strobe::PprofEncoder, PrintingExporter>>;
};

// Takes jobs in bursts, so that the queue is often deep.
std::uint64_t WorkThroughJobs() {
  std::deque<std::uint64_t> jobs;
  std::uint64_t sum = 0;
  for (int burst = 0; burst < 20; ++burst) {
    for (std::uint64_t job = 0; job < 50; ++job) jobs.push_back(job);
    for (; !jobs.empty(); jobs.pop_front()) {
      queued_jobs.store(static_cast<std::int64_t>(jobs.size()), std::memory_order_relaxed);
      for (std::uint64_t n = 0; n < 1'000'000; ++n)
        sum = sum * 6364136223846793005ULL + jobs.front() + n;
    }
    queued_jobs.store(0, std::memory_order_relaxed);
  }
  return sum;
}

}  // namespace

int main() {
  strobe::BasicProfiler<OwnTraits> profiler;
  if (const absl::Status status = profiler.Start(); !status.ok()) {
    std::fprintf(stderr, "own_parts: %s\n", status.ToString().c_str());
    return 1;
  }
  std::uint64_t sum = 0;
  std::thread worker([&] {
    const auto registration = profiler.RegisterThread("worker");
    sum = WorkThroughJobs();
  });
  worker.join();
  const absl::Status stopped = profiler.Stop();
  std::printf("sum %llx; %llu samples; %s\n", static_cast<unsigned long long>(sum),
              static_cast<unsigned long long>(profiler.stats().samples),
              stopped.ToString().c_str());
  return stopped.ok() ? 0 : 1;
}
