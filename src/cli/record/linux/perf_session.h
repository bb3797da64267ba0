// PerfSession: perf events of what the options of a recording name, for as long as they say.
#pragma once

#include <poll.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "perf/linux/perf_recorder.h"
#include "record/record.h"
#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The events that the options name. InvalidArgument for others.
absl::StatusOr<std::vector<PerfRequest>> RequestsOf(const RecordOptions& options);

// Those that end a recording, and `more`.
sigset_t SignalsThatStop(std::initializer_list<int> more = {});

class PerfSession {
 public:
  static constexpr std::chrono::milliseconds kRound{100};  // between two looks at what goes on

  // `options` must outlive the session.
  PerfSession(const RecordOptions& options, std::vector<PerfRequest> requests);

  // What a profile says it is of.
  struct Title {
    std::string program;
    std::uint64_t process = 0;
  };
  [[nodiscard]] Title TitleOfRunning() const;

  // Begins to record what the options name and runs already.
  absl::Status AttachRunning();
  // The whole machine, or a control group.
  absl::Status AttachMachine();

  // What is done meanwhile.
  struct Steps {
    // Asked when a descriptor is readable, and each round.
    std::function<bool()> is_over;
    // With the seconds since the begin.
    std::function<void(double)> end_round = [](double) {};
    std::chrono::steady_clock::duration period{};  // 0: the recording is one
    std::function<absl::Status()> end_period = [] { return absl::OkStatus(); };
  };
  // Until the steps say so, or the asked time is over. A period that passes while the one before is
  // being ended is part of the next.
  absl::Status Record(std::span<pollfd> polled, const Steps& steps);

  [[nodiscard]] PerfRecorder& recorder() { return recorder_; }
  // Where the files of the code are looked for.
  [[nodiscard]] const SymbolSearch& search() const { return search_; }

 private:
  const RecordOptions& options_;
  const SymbolSearch search_;
  PerfRecorder recorder_;
};

}  // namespace internal
}  // namespace strobe
