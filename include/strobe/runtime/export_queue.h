// ExportQueue: the periods that wait for outputs, oldest first.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "strobe/aggregate/aggregated_period.h"
#include "strobe/base/visibility.h"
#include "strobe/core/profile.h"
#include "strobe/export/output_list.h"
#include "strobe/runtime/output_accounts.h"

STROBE_HIDDEN_BEGIN
namespace strobe::internal {

// One period to export. `profile` has everything except what FillProfile takes from `samples`.
struct ExportJob {
  AggregatedPeriod samples;
  Profile profile;
  bool is_filled = false;              // whether `samples` have gone into `profile`
  std::bitset<kMaxOutputs> waiting{};  // the outputs that have not delivered it yet
};

// Fills job.profile from job.samples, once.
void FillProfile(ExportJob& job);
// The sum of the job's samples, in the default value type.
std::int64_t AmountOf(const ExportJob& job);

// A job stays in the queue until each output has delivered or dropped it, and what was dropped is
// in the output's account. Not thread-safe, but a job keeps its address: its samples and its
// profile may be used while other threads use the queue.
class ExportQueue {
 public:
  // For outputs with these file suffixes.
  explicit ExportQueue(std::span<const std::string_view> file_suffixes);

  [[nodiscard]] std::size_t size() const { return jobs_.size(); }
  [[nodiscard]] ExportJob& At(std::size_t index) { return *jobs_[index]; }

  // True if an output is free, and there is room for another period.
  [[nodiscard]] bool HasRoom() const;
  // Adds a period, which waits for each output. Requires HasRoom, unless the period is the
  // session's last. Allocates no memory.
  void Push(std::unique_ptr<ExportJob> job);

  // Notes what an output's Send has returned for a job. The job goes on waiting for that output if
  // a later try may succeed. Allocates no memory, so that no period is delivered twice.
  void Settle(ExportJob& job, std::size_t output, absl::StatusOr<std::string> sent);
  // Removes the job if it waits for no output. Returns whether it did.
  bool RemoveIfSettled(std::size_t index);

  // Drops the oldest jobs for each output that more than kMaxWaitingProfiles wait for.
  void DropBeyondLimit();
  // Drops each job for each output that it waits for.
  void DropAll();

  [[nodiscard]] OutputAccounts& accounts() { return accounts_; }
  [[nodiscard]] const OutputAccounts& accounts() const { return accounts_; }

 private:
  // The periods that wait for outputs, one that is submitted meanwhile, and the session's last.
  [[nodiscard]] std::size_t max_jobs() const { return accounts_.size() * kMaxWaitingProfiles + 2; }
  void Drop(ExportJob& job, std::size_t output);

  std::vector<std::unique_ptr<ExportJob>> jobs_;
  OutputAccounts accounts_;
};

}  // namespace strobe::internal
STROBE_HIDDEN_END
