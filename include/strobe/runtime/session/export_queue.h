// ExportQueue: the periods that wait for outputs, oldest first.
#pragma once

#include <bitset>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "strobe/aggregate/aggregated_period.h"
#include "strobe/base/visibility.h"
#include "strobe/core/profile.h"
#include "strobe/core/stats.h"
#include "strobe/core/symbols.h"
#include "strobe/export/output_list.h"
#include "strobe/runtime/session/output_accounts.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// One period to export. `profile` has everything except what FillProfile takes from `samples`.
struct ExportJob {
  AggregatedPeriod samples;
  Profile profile;
  bool is_filled = false;          // whether `samples` have gone into `profile`
  std::optional<Symbols> symbols;  // made for the first output that sends the profile
  // The queue's own, from here on.
  std::uint64_t number = 0;            // of the jobs that were pushed, from 1
  std::int64_t amount = 0;             // the sum of its samples, in the default value type
  std::bitset<kMaxOutputs> waiting{};  // the outputs that have not delivered it yet
  std::bitset<kMaxOutputs> in_use{};   // the outputs that send it now
};

// Fills job.profile from job.samples, once.
void FillProfile(ExportJob& job);

// A job stays in the queue until each output has delivered or dropped it, and what was dropped is
// in the output's account. Not thread-safe, but a job keeps its address: the output that has taken
// it may use its samples and its profile while other threads use the queue.
class ExportQueue {
 public:
  // For outputs with these file suffixes.
  explicit ExportQueue(std::span<const std::string_view> file_suffixes);

  [[nodiscard]] std::size_t size() const { return jobs_.size(); }

  // True if an output is free, and there is room for another period.
  [[nodiscard]] bool HasRoom() const;
  // Adds a period, which waits for each output, or for those whose bits are in `outputs`, the first
  // output's the lowest. Then drops the oldest for each output that more than kMaxWaitingProfiles
  // wait for. Requires HasRoom, unless the period is the session's last. Allocates no memory.
  void Push(std::unique_ptr<ExportJob> job, std::uint64_t outputs = ~std::uint64_t{0});

  // The oldest job that waits for the output and was pushed after job number `after`; nullptr if
  // there is none. It stays until Settle, in spite of any limit.
  [[nodiscard]] ExportJob* Take(std::size_t output, std::uint64_t after);
  // True if a job that was pushed after job number `after` waits for the output.
  [[nodiscard]] bool HasNewer(std::size_t output, std::uint64_t after) const;
  // Notes what an output's Send has returned for the job that it has taken. The job goes on waiting
  // for that output if a later try may succeed; else it may be gone. Returns whether it waits.
  // Allocates no memory, so that no period is delivered twice.
  bool Settle(ExportJob& job, std::size_t output, absl::StatusOr<std::string> sent);
  // Drops each job that waits for the output.
  void DropAll(std::size_t output);

  [[nodiscard]] OutputAccounts& accounts() { return accounts_; }
  [[nodiscard]] const OutputAccounts& accounts() const { return accounts_; }

 private:
  // The periods that wait for outputs, one that is submitted meanwhile, and the session's last.
  [[nodiscard]] std::size_t max_jobs() const { return accounts_.size() * kMaxWaitingProfiles + 2; }
  void DropBeyondLimit();
  void Drop(ExportJob& job, std::size_t output, ExportDrop reason);
  void RemoveSettled();

  std::vector<std::unique_ptr<ExportJob>> jobs_;
  OutputAccounts accounts_;
  std::uint64_t pushed_ = 0;
};

}  // namespace internal
}  // namespace strobe
