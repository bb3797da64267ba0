// PerfAccount: the profile of perf's records, be they of a file or of the kernel's rings.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "kernel_symbols.h"
#include "off_cpu_times.h"
#include "perf_header.h"
#include "perf_records.h"
#include "perf_stacks.h"
#include "perf_threads.h"
#include "profile/loaded_profile.h"
#include "profile/profile_builder.h"
#include "strobe/process/process_table.h"

namespace strobe::internal {

// What there is so far.
struct PerfCounts {
  std::uint64_t samples = 0;
  std::uint64_t lost = 0;
  std::uint64_t truncated_stacks = 0;      // deeper than their copy
  std::uint64_t stacks_of_32_bit = 0;      // which are not unwound
  std::uint64_t stacks_of_other_cpus = 0;  // the same

  // As a comment of a profile.
  [[nodiscard]] std::string Text() const;
  // What of that is about stacks that are not unwound; empty if there is none.
  [[nodiscard]] std::string NotUnwound() const;
};

class PerfAccount {
 public:
  // `header` and `files` must outlive the account. Events may be added to the header until the
  // first sample. `kernel_symbols` is the path of a file as /proc/kallsyms; empty for no names.
  PerfAccount(const PerfHeader& header, const SymbolFiles& files,
              const ProcessTableOptions& options, std::string kernel_symbols);

  // Takes over a record of the kernel. Records come in the order of their times; one without a time
  // has 0. InvalidArgument for a sample that is broken, ResourceExhausted once the profile is too
  // large; what came before is kept.
  absl::Status Take(const PerfRecord& record, std::uint64_t time);
  // Takes over a process of this machine that runs already: its code, its threads and their names.
  // Errors are those of ProcessTable::Attach.
  absl::Status Attach(std::uint32_t process);
  // Records are of all processes of this machine. The idle task is none: it has no samples.
  void UseMachine();
  // The names of the running kernel, if they may be read.
  void UseRunningKernel(std::shared_ptr<const KernelSymbols> symbols);
  void UseGenerated(PerfStacks::FindGenerated find);
  // Processes that map code of a file whose name begins so are left out from then on, with what
  // they fork, until they execute another program. As what they have used is no part of the
  // profile, its totals are those of its samples from the first of them on. Where records are lost,
  // /proc says what a process that still runs has mapped.
  // All rows say which process they are of.
  void LeaveOut(std::string library);

  // True once the value types stand: no further event is taken over.
  [[nodiscard]] bool has_columns() const { return !accounts_.empty(); }
  [[nodiscard]] PerfCounts counts() const;

  // For each event of the header, the samples that it says are lost, and all that it has counted,
  // since the last call of Finish.
  // What is neither in samples nor lost is [residual]: the parts of periods at the ends of threads,
  // and time in the kernel that may not be seen.
  struct Total {
    std::uint64_t lost = 0;
    std::optional<std::uint64_t> amount{};  // none if it is not known
  };
  void SetTotals(std::span<const Total> totals);
  // Threads that are off a CPU now stay so until `time`, in the records' clock.
  void EndAbsences(std::uint64_t time);

  // The profile of what was taken since the last call. What comes later is in another one.
  // InvalidArgument if there is no event.
  absl::StatusOr<LoadedProfile> Finish();
  // The status of the profile: ResourceExhausted if it has become too large.
  [[nodiscard]] absl::Status status() const { return builder_.status(); }

 private:
  // Of an event.
  struct Account {
    std::size_t column = 0;  // of its amounts; 0: none
    // The columns that count its samples.
    std::optional<std::size_t> count_column{};
    std::optional<std::size_t> switch_column{};
    std::uint64_t samples = 0;
    std::int64_t amount = 0;
    std::uint64_t idle = 0;  // counted of the idle task
    // Two records of the same: the ring's, and the event's own.
    std::uint64_t lost = 0;
    std::uint64_t lost_samples = 0;
    std::optional<std::uint64_t> total{};

    [[nodiscard]] std::uint64_t AllLost() const;
    // With the mean amount of a sample, but no more than was counted.
    [[nodiscard]] std::int64_t LostAmount() const;
    // What was counted, and is neither in samples nor lost; nothing if samples stand for more.
    [[nodiscard]] std::int64_t Residual() const;
  };

  absl::Status MakeColumns();
  void AddColumnsOf(std::size_t number);
  void CountSamples(const Account& account, std::int64_t samples);
  void TakeMap(const PerfRecord& record);
  [[nodiscard]] bool MakesLeftOut(std::string_view path) const;
  void LeaveOutIf(bool is_left_out, std::uint32_t process);
  // The same by what the table says that it has mapped.
  void JudgeCode(std::uint32_t process);
  bool IsLeftOut(std::uint32_t process);
  void TakeKernelMap(std::string_view name, Address address);
  void TakeLost(const PerfRecord& record);
  // What of an event's lost samples is of processes that are not left out: an event does not say
  // it, so by the rings' shares.
  [[nodiscard]] std::uint64_t LostOfRecorded(std::uint64_t lost) const;
  void TakeSwitch(const PerfRecord& record, std::uint64_t time);
  [[nodiscard]] bool IsIdle(const PerfEvent& event, const PerfSample& sample) const;
  void AddAbsence(const OffCpuTimes::Absence& absence);
  absl::Status TakeSample(const PerfRecord& record, std::uint64_t time);
  std::shared_ptr<const KernelSymbols> ReadKernelSymbols();
  void UseKernelSymbols(std::shared_ptr<const KernelSymbols> symbols);
  void AddPseudo(PseudoFrame frame, const Account& account, std::int64_t samples,
                 std::int64_t amount);
  void AddLost();
  void AddResiduals();
  void BeginPeriod();

  const PerfHeader& header_;
  const std::string kernel_symbols_path_;
  ProfileBuilder builder_;
  ProcessTable table_;
  PerfStacks::FindGenerated find_generated_;
  std::optional<PerfStacks> stacks_;
  PerfThreads threads_{builder_, table_};
  bool is_machine_ = false;
  std::string left_out_library_;  // empty: none
  bool has_left_out_ = false;     // anything
  std::shared_ptr<const KernelSymbols> kernel_symbols_;
  std::shared_ptr<const KernelSymbols> used_symbols_;  // the same, once they are those of records
  std::vector<Account> accounts_;                      // one an event
  // Of each event, the amount of samples beyond what was counted when a period ended.
  std::vector<std::uint64_t> ahead_;
  std::uint64_t truncated_before_ = 0;  // stacks of earlier periods
  // Records, by what ran when a ring had room again.
  std::uint64_t lost_of_rings_ = 0;
  std::uint64_t lost_of_left_out_ = 0;
  OffCpuTimes off_cpu_;
  std::size_t off_cpu_event_ = 0;     // the one of which off_cpu_ is, if there is one
  std::vector<std::int64_t> values_;  // of one row
  std::int64_t first_ns_ = std::numeric_limits<std::int64_t>::max();
  std::int64_t last_ns_ = 0;
};

}  // namespace strobe::internal
