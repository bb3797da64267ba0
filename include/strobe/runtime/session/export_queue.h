// ExportQueue: the periods and the windows that wait for outputs, oldest first.
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

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/aggregate/aggregated_period.h"
#include "strobe/base/visibility.h"
#include "strobe/core/profile.h"
#include "strobe/core/recording_options.h"
#include "strobe/core/stats.h"
#include "strobe/core/symbols.h"
#include "strobe/export/output_list.h"
#include "strobe/runtime/session/output_accounts.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Windows that may wait for outputs: one for each call that can be under way, and a trigger's.
inline constexpr std::size_t kMaxWaitingWindows = kMaxRecordings + 1;

// What became of a window, for the caller that waits for it. Guarded like the queue.
struct WindowOutcome {
  bool is_settled = false;  // each output has written it, or has failed
  absl::Status status;      // the first error
};

// One period, or one window of what was kept, to export. `profile` has everything except what
// FillProfile takes from `samples`.
struct ExportJob {
  // Profile::window says which of the two it is.
  [[nodiscard]] bool is_window() const { return !profile.window.empty(); }

  AggregatedPeriod samples;
  Profile profile;
  bool is_filled = false;                  // whether `samples` have gone into `profile`
  std::optional<Symbols> symbols;          // made for the first output that sends the profile
  std::shared_ptr<WindowOutcome> outcome;  // of a window that a caller waits for, else nullptr
  // The queue's own, from here on.
  std::uint64_t number = 0;            // of the jobs that were pushed, from 1
  std::int64_t amount = 0;             // of a period: its samples' sum, in the default value type
  absl::Status status;                 // of a window: the first error
  std::bitset<kMaxOutputs> waiting{};  // the outputs that have not delivered it yet
  std::bitset<kMaxOutputs> in_use{};   // the outputs that send it now
};

// Fills job.profile from job.samples, once.
void FillProfile(ExportJob& job);

// A period stays in the queue until each output has delivered or dropped it, and what was dropped
// is in the output's account. A window stays until each output that takes windows has tried it
// once: the periods have its samples, so nothing is lost with it. Windows neither displace periods
// nor take their room. Not thread-safe, but a job keeps its address: the output that has taken it
// may use its samples and its profile while other threads use the queue.
class ExportQueue {
 public:
  // For outputs with these file suffixes.
  explicit ExportQueue(std::span<const std::string_view> file_suffixes);

  [[nodiscard]] std::size_t size() const { return jobs_.size(); }

  // True if an output is free, and there is room for another period.
  [[nodiscard]] bool HasRoom() const;
  // True if there is room for another window.
  [[nodiscard]] bool HasRoomForWindow() const;
  // Adds a job, which waits for each output, or for those whose bits are in `outputs`, the first
  // output's the lowest. Then drops the oldest period for each output that more than
  // kMaxWaitingProfiles wait for. Requires HasRoom, unless the period is the session's last, or
  // HasRoomForWindow. Allocates no memory.
  void Push(std::unique_ptr<ExportJob> job, std::uint64_t outputs = ~std::uint64_t{0});

  // The oldest window that waits for the output; else the oldest period that waits for it and was
  // pushed after job number `after`; nullptr if there is none. It stays until Settle, in spite of
  // any limit.
  [[nodiscard]] ExportJob* Take(std::size_t output, std::uint64_t after);
  // True if a job that was pushed after job number `after` waits for the output.
  [[nodiscard]] bool HasNewer(std::size_t output, std::uint64_t after) const;
  // Notes what an output's Send has returned for the job that it has taken. A period goes on
  // waiting for that output if a later try may succeed; else the job may be gone. Returns whether
  // it waits. Needs no memory, so that no period is delivered twice.
  bool Settle(ExportJob& job, std::size_t output, absl::StatusOr<std::string> sent);
  // Windows that every output has written, and others.
  [[nodiscard]] std::uint64_t windows_written() const { return windows_written_; }
  [[nodiscard]] std::uint64_t windows_failed() const { return windows_failed_; }
  // Drops each job that waits for the output.
  void DropAll(std::size_t output);

  [[nodiscard]] OutputAccounts& accounts() { return accounts_; }
  [[nodiscard]] const OutputAccounts& accounts() const { return accounts_; }

 private:
  // The periods that wait for outputs, one that is submitted meanwhile, and the session's last.
  [[nodiscard]] std::size_t max_periods() const {
    return accounts_.size() * kMaxWaitingProfiles + 2;
  }
  void DropBeyondLimit();
  void Drop(ExportJob& job, std::size_t output, ExportDrop reason);
  void FailWindow(ExportJob& job, std::size_t output, const absl::Status& status);
  void RemoveSettled();

  std::vector<std::unique_ptr<ExportJob>> jobs_;
  OutputAccounts accounts_;
  std::uint64_t pushed_ = 0;
  std::uint64_t windows_written_ = 0;
  std::uint64_t windows_failed_ = 0;
};

}  // namespace internal
}  // namespace strobe
