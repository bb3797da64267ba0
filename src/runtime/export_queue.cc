#include "strobe/runtime/export_queue.h"

#include <algorithm>
#include <utility>

#include "strobe/export/exporter.h"

namespace strobe::internal {

void FillProfile(ExportJob& job) {
  if (job.is_filled) return;
  strobe::FillProfile(std::move(job.samples), job.profile);
  job.is_filled = true;
}

std::int64_t AmountOf(const ExportJob& job) {
  const Profile& profile = job.profile;
  if (!job.is_filled) return job.samples.rows.Sum(profile.default_value_type);
  const std::size_t columns = profile.value_types.size();
  std::uint64_t amount = 0;  // forged weights may make it wrap
  for (std::size_t i = profile.default_value_type; i < profile.values.size(); i += columns) {
    amount += static_cast<std::uint64_t>(profile.values[i]);
  }
  return static_cast<std::int64_t>(amount);
}

ExportQueue::ExportQueue(std::span<const std::string_view> file_suffixes)
    : accounts_(NewAccounts(file_suffixes)) {
  jobs_.reserve(max_jobs());
}

bool ExportQueue::HasRoom() const {
  std::bitset<kMaxOutputs> busy;
  for (const auto& job : jobs_) busy |= job->waiting;
  return busy.count() < accounts_.size() && jobs_.size() + 1 < max_jobs();
}

void ExportQueue::Push(std::unique_ptr<ExportJob> job) {
  for (std::size_t i = 0; i < accounts_.size(); ++i) job->waiting.set(i);
  jobs_.push_back(std::move(job));
}

void ExportQueue::Settle(ExportJob& job, std::size_t output, absl::StatusOr<std::string> sent) {
  OutputStats& account = accounts_[output];
  if (sent.ok()) {
    account.last_export_path = *std::move(sent);
    ++account.exports;
    job.waiting.reset(output);
    return;
  }
  ++account.exports_failed;
  if (RefusesProfile(sent.status())) Drop(job, output);
}

bool ExportQueue::RemoveIfSettled(std::size_t index) {
  if (jobs_[index]->waiting.any()) return false;
  jobs_.erase(jobs_.begin() + static_cast<std::ptrdiff_t>(index));
  return true;
}

void ExportQueue::DropBeyondLimit() {
  for (std::size_t i = 0; i < accounts_.size(); ++i) {
    auto waiting = static_cast<std::size_t>(
        std::ranges::count_if(jobs_, [i](const auto& job) { return job->waiting[i]; }));
    for (const auto& job : jobs_) {
      if (waiting <= kMaxWaitingProfiles) break;
      if (!job->waiting[i]) continue;
      Drop(*job, i);
      --waiting;
    }
  }
  std::erase_if(jobs_, [](const auto& job) { return job->waiting.none(); });
}

void ExportQueue::DropAll() {
  for (const auto& job : jobs_) {
    for (std::size_t i = 0; i < accounts_.size(); ++i) {
      if (job->waiting[i]) Drop(*job, i);
    }
  }
  jobs_.clear();
}

void ExportQueue::Drop(ExportJob& job, std::size_t output) {
  ++accounts_[output].exports_dropped;
  accounts_[output].amount_dropped += AmountOf(job);
  job.waiting.reset(output);
}

}  // namespace strobe::internal
