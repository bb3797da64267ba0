// HeapProfile: the heap profile of the process, as gperftools' functions begin, write and end it.
#pragma once

#include <semaphore.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "session_file.h"
#include "strobe/allocations/allocation_sampling.h"
#include "strobe/base/visibility.h"
#include "strobe/own_parts.h"
#include "strobe/platform/fork_safe_mutex.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// When a file is written by itself; 0 for never.
struct HeapIntervals {
  std::int64_t allocated_bytes = 1 << 30;  // since the last file
  std::int64_t in_use_bytes = 100 << 20;   // more than at any file before
  std::int64_t time_s = 0;                 // since the last file

  // As the variables HEAP_PROFILE_..._INTERVAL say.
  static HeapIntervals OfVariables();
};

// Why a file is due, in words; nothing if none is. All amounts are of now, but for those at the
// last files.
struct HeapAmounts {
  std::int64_t allocated_bytes = 0;
  std::int64_t in_use_bytes = 0;
  std::int64_t time_s = 0;
};
std::optional<std::string> DueReason(const HeapIntervals& intervals, const HeapAmounts& now,
                                     const HeapAmounts& last);

// Thread-safe. One for the process, which is never destroyed.
class HeapProfile {
 public:
  struct Traits : DefaultTraits {
    using Providers = ProviderList<AllocationProvider>;
    using Outputs = OutputList<Output<PprofEncoder, SessionFileExporter>>;
  };
  // The mean distance of samples in bytes.
  static constexpr std::int64_t kDefaultSampleBytes = 64 << 10;

  // May throw std::bad_alloc.
  static HeapProfile& OfProcess();

  absl::Status Start(const std::string& prefix);
  [[nodiscard]] bool IsRunning();
  // Without a file. Does nothing if none is under way.
  void Stop();
  // Does nothing if none is under way.
  absl::Status Dump(std::string_view reason);
  // Writes a last file if a profile is under way.
  void EndAtExit();
  // The text of GetHeapProfile.
  std::string Text();

 private:
  HeapProfile();

  // Holds while this process, and not its parent, has a profile under way.
  [[nodiscard]] bool RunsHere() const {
    return is_running_ && forks_ == NativePlatform::ForkCount();
  }
  // Brings the sum up to now; the mutex is held.
  absl::Status Update() { return profiler_.Flush(); }
  absl::Status DumpHere(std::string_view reason);
  void Watch();
  void EndWatch();
  [[nodiscard]] HeapAmounts AmountsNow() const;
  // An EventTarget::record.
  static bool Record(void* self, const SampledAmounts& amounts, StackKeeper* keeper);

  const HeapIntervals intervals_;
  const std::int64_t check_bytes_;  // between two checks
  const std::shared_ptr<CurrentFile> sum_ = std::make_shared<CurrentFile>();
  BasicProfiler<Traits> profiler_;
  const EventTarget target_;           // the profiler
  const EventTarget counting_target_;  // Record

  ForkSafeMutex<NativePlatform> control_mutex_;  // of Start and Stop
  ForkSafeMutex<NativePlatform> mutex_;          // of what follows
  bool is_running_ = false;
  std::uint64_t forks_ = 0;
  std::string prefix_;
  int files_ = 0;
  HeapAmounts last_;

  // Of the thread that writes files by itself.
  NativePlatform::OwnThread watcher_;
  std::atomic<bool> is_ending_{false};
  sem_t woken_{};
  // Written by the threads that allocate.
  std::atomic<std::int64_t> allocated_bytes_{0};
  std::atomic<std::int64_t> next_check_bytes_{0};
};

}  // namespace internal
}  // namespace strobe
