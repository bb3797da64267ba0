// RecordedProcesses: what /proc says of the processes of a recording.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "record/recording_output.h"

namespace strobe::internal {

class RecordedProcesses {
 public:
  // All of them have `variable` ("NAME=value") in the environment that they were started with, but
  // for those that were given another one.
  explicit RecordedProcesses(std::string variable) : variable_(std::move(variable)) {}

  // Waits until each worker has ended: it has then exported all that its program has left. Returns
  // after `longest` in any case: a program that lives on keeps its worker.
  void AwaitWorkers(std::chrono::milliseconds longest) const;

  // The processes that run and are no workers.
  [[nodiscard]] std::vector<std::uint64_t> Programs() const;
  // False once the process has ended.
  [[nodiscard]] bool IsOne(std::uint64_t process) const;

  // "sleep (12), a daemon (345)": the children of this process but for workers, at most
  // kMaxNamedChildren of them.
  [[nodiscard]] std::string RunningChildren() const;
  static constexpr std::size_t kMaxNamedChildren = 5;

 private:
  const std::string variable_;
};

// Says that the command has ended, and that the recording goes on with `children`.
void SayWhatRuns(RecordingOutput& output, const std::string& children);

}  // namespace strobe::internal
