#include "own_threads.h"

#include <algorithm>
#include <array>
#include <atomic>

namespace strobe::internal {
namespace {

// Without a lock: in a fork's child the thread that holds it might not exist. A mark is a thread's
// id and, above it, the number of forks; 0 is free, as is a mark of a parent's thread.
constinit std::array<std::atomic<std::uint64_t>, kMaxOwnThreads> marks{};
constinit std::atomic<std::int64_t> ended_ns{0};

constexpr int kForksShift = 32;
std::uint64_t MarkOf(std::uint64_t thread_id, std::uint64_t forks) {
  return forks << kForksShift | thread_id;
}
bool IsOf(std::uint64_t mark, std::uint64_t forks) {
  return mark != 0 && mark >> kForksShift == (forks << kForksShift >> kForksShift);
}
std::uint64_t ThreadOf(std::uint64_t mark) { return mark << kForksShift >> kForksShift; }

}  // namespace

OwnThreadMark::OwnThreadMark(std::uint64_t thread_id, std::uint64_t forks,
                             ReadThreadClock read_clock)
    : thread_id_(thread_id), read_clock_(read_clock), mark_(MarkOf(thread_id, forks)) {
  for (auto& place : marks) {
    std::uint64_t mark = place.load(std::memory_order_relaxed);
    if (!IsOf(mark, forks) && place.compare_exchange_strong(mark, mark_)) return;
  }
  mark_ = 0;
}

OwnThreadMark::~OwnThreadMark() {
  const auto place = std::find(marks.begin(), marks.end(), mark_);
  if (mark_ == 0 || place == marks.end()) return;
  place->store(0);
  ended_ns.fetch_add(std::max<std::int64_t>(read_clock_(thread_id_), 0));
}

bool IsOwnThread(std::uint64_t thread_id, std::uint64_t forks) {
  return std::find(marks.begin(), marks.end(), MarkOf(thread_id, forks)) != marks.end();
}

std::int64_t OwnThreadsCpuTimeNs(std::uint64_t forks, ReadThreadClock read_clock) {
  std::int64_t sum_ns = ended_ns.load();
  for (const auto& place : marks) {
    const std::uint64_t mark = place.load();
    if (IsOf(mark, forks)) sum_ns += std::max<std::int64_t>(read_clock(ThreadOf(mark)), 0);
  }
  return sum_ns;
}

}  // namespace strobe::internal
