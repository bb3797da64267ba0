// PerfEvents: events of threads of this machine, and the rings that the kernel writes them to.
#pragma once

#include <poll.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "perf/perf_account.h"
#include "perf/perf_header.h"
#include "perf_request.h"
#include "perf_rings.h"
#include "strobe/base/visibility.h"
#include "strobe/platform/linux/descriptor.h"

struct perf_event_attr;

namespace strobe {
namespace STROBE_HIDDEN internal {

struct PerfEventOptions {
  std::vector<PerfRequest> requests;
  double hz = 99;
  std::uint64_t count = 1;
  std::size_t stack_bytes = 8192;
  std::size_t ring_bytes = std::size_t{4} << 20;  // of one CPU
};

// What events are of, and what messages call it. Events that never begin keep the rings, so that
// those of any other target may end before the recording does.
struct PerfTarget {
  enum class Scope : std::uint8_t {
    kThreadAndStarted,  // a thread, and what it starts later
    kThread,            // a thread alone
    kMachine,           // all that runs
    kCgroup,            // all that runs in a control group
  };
  enum class Begin : std::uint8_t { kNow, kAtExec, kNever };

  Scope scope{};
  int id = -1;  // of the thread; a descriptor of the control group's directory
  std::string name;
  Begin begin{};

  [[nodiscard]] bool is_of_cpus() const {
    return scope == Scope::kMachine || scope == Scope::kCgroup;
  }
};

// An event counts on one CPU. One of a thread is inherited by what the thread starts: so each
// thread has one descriptor for each event and CPU, and a thread that starts later needs none. All
// events of a CPU share its ring.
class PerfEvents {
 public:
  // All rings together. With many CPUs each is smaller.
  static constexpr std::size_t kMaxRingBytes = std::size_t{256} << 20;

  explicit PerfEvents(PerfEventOptions options);

  // Opens the events of a target. They begin at once, or at the thread's next exec. NotFound if the
  // thread has ended. ResourceExhausted if events have their share of the files that this
  // process may open (FileShares). Other errors say what forbids it. After an error the target has
  // no event.
  absl::Status Add(const PerfTarget& target);
  // Remove and CloseEnded require that the first target, which has the rings, lives on.
  // Takes the events that were added of a thread away, with those that others have inherited of it.
  // False if it has none.
  bool Remove(int thread);
  // The thread goes on under another id: that of its process, once it has executed a program.
  void Rename(int thread, int to);
  // Closes the events of targets that have ended, with all that has inherited them. What they have
  // counted stays in Totals.
  void CloseEnded();
  // The account has all records up to that time. Events that were closed before need no id there.
  void ForgetClosed(std::uint64_t until);
  void Stop();
  // The time, in the clock of the records.
  static std::uint64_t Now();

  // Calls `take` for each record that the rings hold.
  template <class Take>
  absl::Status Drain(Take take) {
    for (const auto& ring : rings_) {
      if (ring == nullptr) continue;
      if (absl::Status status = ring->Drain(take); !status.ok()) return status;
    }
    return absl::OkStatus();
  }
  // Waits until a ring fills, or one of `others` is ready, or `timeout` is over.
  void Wait(std::span<pollfd> others, std::chrono::milliseconds timeout);
  // What each event has counted, and lost.
  [[nodiscard]] std::vector<PerfAccount::Total> Totals() const;

  // The events, as the account of a recording needs them. Its times are those of CLOCK_MONOTONIC.
  [[nodiscard]] const PerfHeader& header() const { return header_; }
  // True if the kernel's part may be seen.
  [[nodiscard]] bool sees_kernel() const { return sees_kernel_; }
  [[nodiscard]] std::uint64_t broken_rings() const;

 private:
  struct Opened {
    Descriptor descriptor;
    std::size_t request = 0;
    int target = -1;  // its id
    std::uint64_t id = 0;
  };
  struct Closed {
    std::uint64_t id = 0;
    std::uint64_t time = 0;
  };

  [[nodiscard]] perf_event_attr AttributesOf(std::size_t request, const PerfTarget& target) const;
  [[nodiscard]] Descriptor TryToOpen(std::size_t request, int cpu, const PerfTarget& target) const;
  absl::StatusOr<Descriptor> Open(std::size_t request, int cpu, const PerfTarget& target);
  void FindWhatMayBeSeen(const PerfTarget& target);
  absl::Status AddOne(std::size_t request, std::size_t cpu, const PerfTarget& target);
  absl::Status MapRing(int descriptor, std::size_t cpu);
  [[nodiscard]] bool HasRing(const Opened& opened) const;
  // Closes the events from that index on, with their rings.
  void CloseFrom(std::size_t first);
  void NoteClosed(const Opened& opened);
  void AddTotal(const Opened& opened, PerfAccount::Total& total) const;
  [[nodiscard]] absl::Status Refused(int error, std::size_t request,
                                     const PerfTarget& target) const;

  const PerfEventOptions options_;
  const std::vector<int> cpus_;
  std::size_t ring_bytes_;
  PerfHeader header_;
  std::vector<std::unique_ptr<PerfRing>> rings_;  // one a CPU
  std::vector<Opened> opened_;
  std::deque<Closed> closed_;              // whose ids the header has, in the order of their times
  std::vector<PerfAccount::Total> ended_;  // of events that were closed, one a request
  std::vector<pollfd>
      polled_;  // the rings, until their first threads end; then what else is waited for
  // What this kernel and this user can do.
  bool sees_kernel_ = true;
  bool has_build_ids_ = true;
  bool counts_lost_ = true;
  bool counts_idle_ = false;  // in clocks
};

}  // namespace internal
}  // namespace strobe
