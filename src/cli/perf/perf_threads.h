// PerfThreads: the threads of a perf recording, and the lives of their processes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/container/flat_hash_map.h"
#include "perf_records.h"
#include "profile/profile_builder.h"
#include "strobe/process/process_table.h"

namespace strobe::internal {

class PerfThreads {
 public:
  // The label of a profile of several processes.
  static constexpr std::string_view kProcessLabel = "process id";
  static constexpr std::string_view kProcessNameLabel = "process name";

  // Tells `table` of processes. Both outlive this.
  PerfThreads(ProfileBuilder& builder, ProcessTable& table) : builder_(builder), table_(table) {}

  // Takes over a record of type kComm, kFork or kExit. A process ends with its last thread.
  void Take(const PerfRecord& record);
  // Takes over the threads of a process of this machine, and their names, from /proc.
  void Attach(std::uint32_t process);
  // The number of a thread's labels: its id, its name and its process.
  std::uint32_t LabelsOf(std::uint32_t process, std::uint32_t thread);
  // If all samples are of one process, no label needs to say which.
  void Finish();

 private:
  struct Thread {
    std::uint32_t process = 0;
    std::string name;
    bool is_alive = false;
    std::uint32_t labels = kNoLabels;  // until the name changes
    static constexpr std::uint32_t kNoLabels = 0xFFFFFFFF;
  };

  void SetName(std::uint32_t process, std::uint32_t thread, std::string_view name);
  void TakeName(const PerfRecord& record);
  void TakeFork(const PerfRecord& record);
  void TakeExit(const PerfRecord& record);
  Thread& ThreadOf(std::uint32_t process, std::uint32_t thread);
  void Begin(Thread& thread, std::uint32_t process);

  ProfileBuilder& builder_;
  ProcessTable& table_;
  absl::flat_hash_map<std::uint32_t, Thread> threads_;       // by id
  absl::flat_hash_map<std::uint32_t, std::uint32_t> alive_;  // threads of a process
};

}  // namespace strobe::internal
