#include "strobe/allocations/allocation_sampling.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <thread>

#include "sampled_allocations.h"

namespace strobe::internal {
namespace {

constinit std::atomic<const AllocationSink*> current_sink{nullptr};
constinit std::atomic<std::int64_t> interval_bytes{AllocationOptions().interval_bytes};
// Threads that may use the sink.
constinit std::atomic<int> users{0};
// How long the end of a sink waits for them. One that takes longer is stopped by a debugger, or was
// left behind by a fork.
constexpr std::chrono::milliseconds kUsersWait{100};

// Distinguishes threads, and calls.
std::uint64_t NewSeed() {
  static constinit std::atomic<std::uint64_t> count{0};
  const auto now = std::chrono::steady_clock::now().time_since_epoch().count();
  return static_cast<std::uint64_t>(now) ^ count.fetch_add(1, std::memory_order_relaxed) << 48;
}

}  // namespace

constinit thread_local AllocationSampler allocation_sampler;

void* TakeAllocation(void* block, std::size_t size) noexcept {
  const int saved_errno = errno;
  const AllocationAmounts amounts =
      allocation_sampler.Take(size, interval_bytes.load(std::memory_order_relaxed), NewSeed());
  if (amounts.objects > 0 && block != nullptr) {
    users.fetch_add(1, std::memory_order_seq_cst);
    const AllocationSink* const sink = current_sink.load(std::memory_order_seq_cst);
    if (sink != nullptr) sink->record(sink->profiler, amounts);
    users.fetch_sub(1, std::memory_order_release);
  }
  errno = saved_errno;
  return block;
}

absl::Status BeginAllocations(const AllocationSink& sink, const AllocationOptions& options) {
  if (options.interval_bytes < 1 || options.interval_bytes > kMaxAllocationIntervalBytes) {
    return absl::InvalidArgumentError(
        "AllocationOptions::interval_bytes: expected a number from 1 to 2^40");
  }
  const AllocationSink* none = nullptr;
  if (!current_sink.compare_exchange_strong(none, &sink, std::memory_order_seq_cst))
    return absl::FailedPreconditionError("allocations are sampled already");
  interval_bytes.store(options.interval_bytes, std::memory_order_relaxed);
  return absl::OkStatus();
}

void EndAllocations(const AllocationSink& /*sink*/) {
  current_sink.store(nullptr, std::memory_order_seq_cst);
  const auto deadline = std::chrono::steady_clock::now() + kUsersWait;
  while (users.load(std::memory_order_seq_cst) != 0 && std::chrono::steady_clock::now() < deadline)
    std::this_thread::yield();
}

}  // namespace strobe::internal
