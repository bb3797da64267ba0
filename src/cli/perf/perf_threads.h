// PerfThreads: the threads of a perf recording, and the lives of their processes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "perf_records.h"
#include "profile/profile_builder.h"
#include "strobe/core/label_set.h"
#include "strobe/process/process_table.h"

namespace strobe::internal {

class PerfThreads {
 public:
  // The labels of a profile of several processes.
  static constexpr std::string_view kProcessLabel = "process id";
  static constexpr std::string_view kProcessNameLabel = "process name";
  // The label of processes in containers, in a profile of a whole machine.
  static constexpr std::string_view kContainerLabel = "container id";
  // The names, in a profile of a whole machine, of what has ended before it was named, or when the
  // kernel had taken it off its lists; and of what runs in namespaces that this one does not see.
  static constexpr std::string_view kEndedName = "[ended]";
  static constexpr std::string_view kOutsideName = "[outside]";

  // Tells `table` of processes. Both outlive this.
  PerfThreads(ProfileBuilder& builder, ProcessTable& table) : builder_(builder), table_(table) {}

  // Takes over a record of type kComm, kFork or kExit. A process ends with its last thread.
  void Take(const PerfRecord& record);
  // Takes over the threads of a process of this machine, and their names, from /proc.
  void Attach(std::uint32_t process);
  // The processes are those of this machine, while they run: /proc says more of them.
  void UseProc() { uses_proc_ = true; }
  // All processes of the machine are recorded, so each row says which it is of, and where it runs.
  void UseMachine();
  // Finish leaves the labels of the process, also if there is one process.
  void KeepProcesses() { keeps_processes_ = true; }
  // The process, and what it forks, is none of the profile until it executes another program or
  // ends.
  void LeaveOut(std::uint32_t process, bool is_left_out = true) {
    processes_[process].is_left_out = is_left_out;
  }
  [[nodiscard]] bool IsLeftOut(std::uint32_t process) const;
  // Records are lost: what they would have said of processes that began before is in doubt.
  void NoteLoss() { ++losses_; }
  // True of a process in doubt, once for each loss.
  [[nodiscard]] bool TakeDoubt(std::uint32_t process);
  // The number of a thread's labels: its id, its name, and its process's.
  std::uint32_t LabelsOf(std::uint32_t process, std::uint32_t thread);
  // False if a record has said that the thread has ended.
  [[nodiscard]] bool IsAlive(std::uint32_t thread) const;
  // If all samples are of one process and one program, no label needs to say which.
  void Finish();
  static void RemoveOnlyProcess(std::vector<LabelSet>& sets);
  // Behind Finish: the builder begins another profile. What has ended is forgotten.
  void BeginPeriod();

 private:
  struct Thread {
    std::uint32_t process = 0;
    std::string name;
    bool is_alive = false;
    std::uint32_t labels = kNoLabels;  // until the name changes
    static constexpr std::uint32_t kNoLabels = 0xFFFFFFFF;
  };

  // A process is called what its program was when it was executed. What its threads call themselves
  // later does not change that.
  struct Process {
    std::string name;
    std::string container;
    std::uint32_t alive = 0;    // threads
    bool is_looked_up = false;  // in /proc, since its name is known
    bool is_left_out = false;
    std::uint32_t losses = 0;  // of records, until it was last in no doubt
  };

  // An estimate, with the tables that find a thread and its process.
  static constexpr std::size_t kThreadBytes = 4 * sizeof(Thread);

  void SetName(std::uint32_t process, std::uint32_t thread, std::string_view name, bool is_exec);
  const Process& LookedUp(std::uint32_t process);
  void TakeName(const PerfRecord& record);
  void TakeFork(const PerfRecord& record);
  void TakeExit(const PerfRecord& record);
  Thread& ThreadOf(std::uint32_t process, std::uint32_t thread);
  void Begin(Thread& thread, std::uint32_t process);
  void End(Thread& thread);
  void EndOthers(std::uint32_t process, std::uint32_t than);

  ProfileBuilder& builder_;
  ProcessTable& table_;
  bool uses_proc_ = false;
  bool is_machine_ = false;
  bool keeps_processes_ = false;
  std::uint32_t losses_ = 0;
  absl::flat_hash_map<std::uint32_t, Thread> threads_;  // by id
  absl::flat_hash_map<std::uint32_t, Process> processes_;
};

}  // namespace strobe::internal
