// CpuProfile: the CPU profile of the process, as gperftools' functions begin and end it.
#pragma once

#include <ctime>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "filtered_unwinder.h"
#include "session_file.h"
#include "strobe/base/visibility.h"
#include "strobe/core/registration.h"
#include "strobe/own_parts.h"
#include "strobe/platform/fork_safe_mutex.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Thread-safe. One for the process, which is never destroyed: threads use it until the process has
// ended. The exit of the program stops its session.
class CpuProfile {
 public:
  struct Traits : DefaultTraits {
    using Unwinder = FilteredUnwinder<DefaultTraits::Unwinder>;
    using Outputs = OutputList<Output<PprofEncoder, SessionFileExporter>>;
  };
  struct State {
    bool is_running = false;
    std::time_t start_time = 0;
    std::string path;
    int samples = 0;
  };

  // May throw std::bad_alloc.
  static CpuProfile& OfProcess();

  // The error says what is wrong, without the path.
  absl::Status Start(const std::string& path, SampleFilter::Function filter, void* argument);
  // Write the file. Do nothing if no session runs.
  absl::Status Stop();
  absl::Status Flush();
  [[nodiscard]] State state();

  [[nodiscard]] Registration RegisterThread(const char* name) {
    return profiler_.RegisterThread(name);
  }

 private:
  CpuProfile();

  // In a fork's child, the parent's session does not run.
  [[nodiscard]] bool IsRunning() const {
    return start_time_ != 0 && forks_ == NativePlatform::ForkCount();
  }

  const std::shared_ptr<CurrentFile> file_ = std::make_shared<CurrentFile>();
  BasicProfiler<Traits> profiler_;
  ForkSafeMutex<NativePlatform> mutex_;
  // Of the session; 0 if none runs.
  std::time_t start_time_ = 0;
  std::uint64_t forks_ = 0;
  int taken_before_ = 0;
};

// Registers the calling thread under the name that it has, until it ends: by return, by
// pthread_exit or by cancellation. Does nothing if it is registered, or is a thread of Strobe's.
void RegisterForCpuProfile() noexcept;

}  // namespace internal
}  // namespace strobe
