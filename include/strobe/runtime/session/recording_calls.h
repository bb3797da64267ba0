// RecordingCalls: the calls of Record that the collector carries out.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "strobe/aggregate/aggregated_period.h"
#include "strobe/base/memory_guard.h"
#include "strobe/base/visibility.h"
#include "strobe/core/profile.h"
#include "strobe/core/recording_options.h"
#include "strobe/core/stats.h"
#include "strobe/runtime/drain/recording_columns.h"
#include "strobe/runtime/session/export_queue.h"
#include "strobe/runtime/session/monitor.h"
#include "strobe/runtime/session/session_status.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// One call. The collector and the caller share it, because the caller's thread can be cancelled
// while it waits.
struct RecordingCall {
  // Set by the caller.
  RecordingColumns columns;
  std::int64_t period_ns = 0;  // of the first column's provider; 0 if it has none
  std::int64_t duration_ns = 0;
  std::int64_t last_ns = 0;  // of a call that takes what was kept, else 0: see RecordingOptions
  std::shared_ptr<WindowOutcome> dump;        // of a call that has the window written, else nullptr
  std::optional<Monitor::Deadline> deadline;  // of the caller's wait, if it has one
  std::shared_ptr<const std::atomic<bool>> cancelled;  // see RecordingOptions; may be null

  // Used by the collector only.
  std::optional<std::size_t> place;  // of the recording, while it is open: see Recorder
  std::int64_t end_ns = 0;           // by the collector's clock
  Stats at_begin;

  // The result: an error, or a profile without its samples, and the samples.
  absl::Status status;
  Profile profile;
  AggregatedPeriod samples;
  bool is_done = false;  // under the monitor
};

// `monitor` guards the list. Any thread may call Wait. Only the collector calls the other
// functions, or, after the collector has ended, the thread that ends the session.
class RecordingCalls {
 public:
  // `monitor` must outlive this object.
  explicit RecordingCalls(Monitor& monitor) : monitor_(monitor) { calls_.reserve(kMaxRecordings); }

  // Hands the call to the collector, and waits until it is done. False if its deadline has passed
  // before: the collector may still write into the call. Allocates no memory.
  [[nodiscard]] bool Wait(const std::shared_ptr<RecordingCall>& call);

  // When the next call begins or ends: INT64_MIN for a call that has not begun, INT64_MAX if there
  // is no call. Requires the monitor's lock.
  [[nodiscard]] std::int64_t due_ns() const;

  // The calls that are due, at the front. Requires the monitor's lock.
  using Calls = std::array<std::shared_ptr<RecordingCall>, kMaxRecordings>;
  [[nodiscard]] Calls Due(std::int64_t now_ns) const;

  // Calls begin(call) for each call that has not begun, and end(call) for the others. A call
  // without a place after begin is done.
  template <class Begin, class End>
  void Serve(const Calls& due, const Begin& begin, const End& end) {
    for (const std::shared_ptr<RecordingCall>& call : due) {
      if (call == nullptr) continue;
      if (call->place) {
        end(*call);
        Finish(call);
        continue;
      }
      begin(*call);
      if (!call->place) Finish(call);
    }
  }
  // Call it after the session has ended. Calls end(call) for each call that has begun. Refuses all
  // others, including later ones.
  template <class End>
  void Close(const End& end) {
    Calls left;
    {
      const std::lock_guard lock(monitor_);
      is_closed_ = true;
      left = Due(INT64_MAX);
    }
    for (const std::shared_ptr<RecordingCall>& call : left) {
      if (call == nullptr) continue;
      if (call->place) {
        end(*call);
      } else {
        call->status = NotRunning();
      }
      Finish(call);
    }
  }

 private:
  [[nodiscard]] static std::int64_t DueNs(const RecordingCall& call) {
    const bool is_cancelled =
        call.cancelled != nullptr && call.cancelled->load(std::memory_order_relaxed);
    return call.place && !is_cancelled ? call.end_ns : INT64_MIN;
  }
  void Finish(const std::shared_ptr<RecordingCall>& call);

  Monitor& monitor_;
  std::vector<std::shared_ptr<RecordingCall>> calls_;
  bool is_closed_ = false;
};

}  // namespace internal
}  // namespace strobe
