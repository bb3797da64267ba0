// PerfRecorder: a profile of the perf events of processes, while they run.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "perf/jit_names.h"
#include "perf/perf_account.h"
#include "perf/perf_records.h"
#include "perf_events.h"
#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Used by one thread. Records go through the same account as those of a perf.data file.
class PerfRecorder {
 public:
  PerfRecorder(PerfEventOptions options, SymbolSearch search);

  // Records a process that runs already: all threads that it has, and all that it starts.
  absl::Status Attach(std::uint32_t process);
  // Records what that process, which is attached, has started before, and what that has started.
  // Those that this user may not look into are left out, which a comment says.
  absl::Status AttachDescendants(std::uint32_t process);
  // Records a thread of a process that runs already, and nothing that it starts.
  absl::Status AttachThread(std::uint32_t thread);
  // Records all that runs on this machine, or in the control group whose directory `cgroup` is. Of
  // processes that this user may not look into, the code has no names, which a comment says.
  absl::Status AttachMachine(std::optional<int> cgroup);
  // Records a thread of a process, which messages call `name`, from its next exec on, and what it
  // starts then. A thread whose events are there already has no others: AlreadyExists.
  absl::Status AttachAtExec(std::uint32_t process, std::uint32_t thread, const std::string& name);
  // That thread executes nothing. Events that it has inherited stay.
  void Detach(std::uint32_t thread);

  // For a recording that attaches to many processes that begin and end meanwhile. To be called
  // first. The rings are those of the calling thread, which must live as long.
  struct Many {
    // Processes that have mapped a library whose name begins so are left out: they sample
    // themselves.
    std::string left_out;
  };
  absl::Status BeginMany(Many many);

  // Waits until there is something in the rings, or a descriptor of `others` is readable, or
  // `timeout` is over. Then takes over the records. An error ends the recording; what it has so far
  // is kept.
  absl::Status Collect(std::span<pollfd> others, std::chrono::milliseconds timeout);
  [[nodiscard]] PerfCounts counts() const { return account_.counts(); }

  // About all that was recorded: see PerfCounts. Once the last profile is made.
  [[nodiscard]] std::string NotUnwound() const { return all_.NotUnwound(); }

  // The profile of what was recorded since the last one. The recording goes on.
  absl::StatusOr<LoadedProfile> EndPeriod();
  // Ends the recording. `status` says why, in a comment, unless it is OK.
  absl::StatusOr<LoadedProfile> Finish(const absl::Status& status);

 private:
  absl::Status TakeRecords();
  // The names of the kernel's functions are those that were asked for at the begin.
  void AwaitKernel();
  absl::StatusOr<LoadedProfile> MakeProfile(std::vector<PerfAccount::Total> totals);
  // Takes over the code and the names of a process whose events have begun.
  absl::Status TakeOver(std::uint32_t process);
  // Takes the records that have come, and notes which threads have events.
  absl::Status NoteThreads();
  void NoteThread(const PerfRecord& record, std::uint64_t time);
  // The process has executed a program: one thread is left, with the id of the process.
  void NoteExec(std::uint32_t process, std::uint64_t time);
  // True if the thread had no events.
  bool AddThread(std::uint32_t thread, std::uint32_t process);

  PerfEvents events_;
  JitNames jit_names_;
  PerfAccount account_;
  PerfOrder order_;
  // A thread whose events are there, opened or inherited. What has ended is kept until all records
  // of before are taken: the rings come one after the other, not in the order of their times.
  struct Attached {
    std::uint32_t process = 0;
    std::uint64_t since = 0;  // that is so, by the records' clock
    bool has_ended = false;
  };
  [[nodiscard]] bool HasEvents(std::uint32_t thread) const;
  // What a record of that time says. Nothing if a later one has said more.
  void SetThread(std::uint32_t thread, const Attached& attached);
  absl::flat_hash_map<std::uint32_t, Attached> threads_;
  bool has_many_ = false;
  std::future<std::shared_ptr<const KernelSymbols>> kernel_;  // until they are there
  std::vector<PerfAccount::Total> totals_;                    // at the end of the last period
  PerfCounts all_;                                            // of the stacks that are not unwound
  std::uint64_t refused_ = 0;                                 // descendants
  std::uint64_t unreadable_ = 0;                              // processes
};

}  // namespace internal
}  // namespace strobe
