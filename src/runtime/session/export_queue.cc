#include "strobe/runtime/session/export_queue.h"

#include <algorithm>
#include <utility>

#include "strobe/base/memory_guard.h"
#include "strobe/export/exporter.h"
#include "strobe/runtime/session/session_status.h"

namespace strobe::internal {

void FillProfile(ExportJob& job) {
  if (job.is_filled) return;
  strobe::FillProfile(std::move(job.samples), job.profile);
  job.is_filled = true;
}

ExportQueue::ExportQueue(std::span<const std::string_view> file_suffixes)
    : accounts_(NewAccounts(file_suffixes)) {
  jobs_.reserve(max_periods() + kMaxWaitingWindows);
}

bool ExportQueue::HasRoom() const {
  std::bitset<kMaxOutputs> busy;
  std::size_t periods = 0;
  for (const auto& job : jobs_) {
    if (job->is_window()) continue;
    busy |= job->waiting;
    ++periods;
  }
  return busy.count() < accounts_.size() && periods + 1 < max_periods();
}

bool ExportQueue::HasRoomForWindow() const {
  return std::ranges::count_if(jobs_, &ExportJob::is_window,
                               [](const auto& job) -> const ExportJob& { return *job; }) <
         static_cast<std::ptrdiff_t>(kMaxWaitingWindows);
}

void ExportQueue::Push(std::unique_ptr<ExportJob> job, std::uint64_t outputs) {
  for (std::size_t i = 0; i < accounts_.size(); ++i) job->waiting.set(i, (outputs >> i & 1) != 0);
  job->number = ++pushed_;
  if (!job->is_window()) job->amount = job->samples.rows.Sum(job->profile.default_value_type);
  jobs_.push_back(std::move(job));
  DropBeyondLimit();
}

ExportJob* ExportQueue::Take(std::size_t output, std::uint64_t after) {
  auto found = std::ranges::find_if(
      jobs_, [&](const auto& job) { return job->is_window() && job->waiting[output]; });
  if (found == jobs_.end()) {
    found = std::ranges::find_if(
        jobs_, [&](const auto& job) { return job->number > after && job->waiting[output]; });
  }
  if (found == jobs_.end()) return nullptr;
  (*found)->in_use.set(output);
  return found->get();
}

bool ExportQueue::HasNewer(std::size_t output, std::uint64_t after) const {
  return std::ranges::any_of(
      jobs_, [&](const auto& job) { return job->number > after && job->waiting[output]; });
}

bool ExportQueue::Settle(ExportJob& job, std::size_t output, absl::StatusOr<std::string> sent) {
  OutputStats& account = accounts_[output];
  job.in_use.reset(output);
  if (sent.ok()) {
    account.last_export_path = *std::move(sent);
    ++account.exports;
    job.waiting.reset(output);
  } else {
    ++account.exports_failed;
    if (job.is_window()) {
      FailWindow(job, output, sent.status());
    } else if (RefusesProfile(sent.status())) {
      Drop(job, output, ExportDrop::kRefused);
    }
  }
  const bool is_waiting = job.waiting[output];
  RemoveSettled();
  return is_waiting;
}

void ExportQueue::DropBeyondLimit() {
  for (std::size_t i = 0; i < accounts_.size(); ++i) {
    auto waiting = static_cast<std::size_t>(std::ranges::count_if(
        jobs_, [i](const auto& job) { return job->waiting[i] && !job->is_window(); }));
    for (const auto& job : jobs_) {
      if (waiting <= kMaxWaitingProfiles) break;
      if (!job->waiting[i] || job->in_use[i] || job->is_window()) continue;
      Drop(*job, i, ExportDrop::kTooManyWaiting);
      --waiting;
    }
  }
  RemoveSettled();
}

void ExportQueue::DropAll(std::size_t output) {
  for (const auto& job : jobs_) {
    if (!job->waiting[output]) continue;
    if (job->is_window()) {
      FailWindow(*job, output, NotRunning());
    } else {
      Drop(*job, output, ExportDrop::kSessionEnded);
    }
  }
  RemoveSettled();
}

void ExportQueue::Drop(ExportJob& job, std::size_t output, ExportDrop reason) {
  ++accounts_[output].exports_dropped;
  ++accounts_[output].drops[static_cast<std::size_t>(reason)];
  accounts_[output].amount_dropped += job.amount;
  job.waiting.reset(output);
}

void ExportQueue::FailWindow(ExportJob& job, std::size_t output, const absl::Status& status) {
  job.waiting.reset(output);
  if (!job.status.ok()) return;
  if (!HasMemoryFor([&] { job.status = OfOutput(status, accounts_[output].name); }))
    job.status = status;
}

void ExportQueue::RemoveSettled() {
  for (const auto& job : jobs_) {
    if (!job->is_window() || job->waiting.any()) continue;
    ++(job->status.ok() ? windows_written_ : windows_failed_);
    if (job->outcome != nullptr) *job->outcome = {.is_settled = true, .status = job->status};
  }
  std::erase_if(jobs_, [](const auto& job) { return job->waiting.none(); });
}

}  // namespace strobe::internal
