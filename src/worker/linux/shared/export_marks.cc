#include "strobe/worker/shared/export_marks.h"

#include <algorithm>

namespace strobe::internal {

void ExportMarks::Begin(std::uint32_t index, std::uint64_t thread_id) {
  const std::lock_guard lock(mutex_);
  threads_[index] = thread_id;
}

void ExportMarks::EndPeriod(std::uint64_t sequence, std::span<const std::int64_t> sums,
                            std::int64_t now_ns, const ReadClock& read_clock) {
  const std::lock_guard lock(mutex_);
  Period& period = periods_.emplace_back();
  period.sequence = sequence;
  period.ended_cpu_ns = std::exchange(ended_cpu_ns_, 0);
  std::copy_n(sums.begin(), std::min(sums.size(), period.sums.size()), period.sums.begin());
  if (periods_.size() > kMaxPeriods) {
    periods_.front().is_exported = true;
    PopExported();
  }
  for (const auto& [index, thread_id] : threads_)
    period.clocks.push_back({index, {.monotonic_ns = now_ns, .cpu_ns = read_clock(thread_id)}});
}

void ExportMarks::NoteExported(std::uint64_t sequence) {
  const std::lock_guard lock(mutex_);
  const auto exported = std::ranges::find(periods_, sequence, &Period::sequence);
  if (exported == periods_.end()) return;
  exported->is_exported = true;
  PopExported();
}

void ExportMarks::PopExported() {
  for (; !periods_.empty() && periods_.front().is_exported; periods_.pop_front()) {
    for (const auto& [index, clocks] : periods_.front().clocks) MoveTo(*area_.At(index), clocks);
    AddUnexported(-periods_.front().ended_cpu_ns);
    for (std::size_t i = 0; i < kMaxValueTypes; ++i) {
      area_.header().values_exported[i].fetch_add(periods_.front().sums[i],
                                                  std::memory_order_relaxed);
    }
  }
}

void ExportMarks::End() {
  const std::lock_guard lock(mutex_);
  for (Period& period : periods_) period.is_exported = true;
  PopExported();
}

void ExportMarks::GiveBack(std::uint32_t index) {
  SharedRegistration* const shared = area_.At(index);
  if (shared == nullptr) return;
  const std::lock_guard lock(mutex_);
  for (Period& period : periods_) {
    std::erase_if(period.clocks, [&](const auto& clocks) {
      if (clocks.first != index) return false;
      End(period, *shared, clocks.second);
      return true;
    });
  }
  if (threads_.erase(index) != 0) {
    Period current;
    End(current, *shared, {.monotonic_ns = shared->end_ns, .cpu_ns = shared->end_cpu_ns});
    ended_cpu_ns_ += current.ended_cpu_ns;
  }
  shared->state.store(SharedRegistrationState::kFree, std::memory_order_release);
}

void ExportMarks::End(Period& period, SharedRegistration& shared, const Clocks& clocks) {
  const std::int64_t since_cpu_ns = shared.since_cpu_ns;
  if (since_cpu_ns < 0 || clocks.cpu_ns < since_cpu_ns) return;
  period.ended_cpu_ns += clocks.cpu_ns - since_cpu_ns;
  AddUnexported(clocks.cpu_ns - since_cpu_ns);
  MoveTo(shared, clocks);
}

void ExportMarks::MoveTo(SharedRegistration& shared, const Clocks& clocks) {
  if (clocks.cpu_ns < 0) return;
  shared.since_ns = clocks.monotonic_ns;
  shared.since_cpu_ns = clocks.cpu_ns;
}

void ExportMarks::AddUnexported(std::int64_t cpu_ns) {
  area_.header().unexported_cpu_ns.fetch_add(cpu_ns, std::memory_order_relaxed);
}

}  // namespace strobe::internal
