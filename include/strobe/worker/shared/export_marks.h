// ExportMarks: up to where the exported profiles account for the program's threads, for the case
// that the worker dies.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <mutex>
#include <span>
#include <unordered_map>
#include <utility>
#include <vector>

#include "strobe/base/visibility.h"
#include "strobe/core/record.h"
#include "strobe/worker/shared/shared_area.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// In the worker; thread-safe. A registration's account begins at its `since` clocks. Each export
// moves these forward, to what the clocks read at the end of the exported period. So what a worker
// that dies has taken and not exported is the difference between a thread's clock and its `since`.
// Of the threads whose registrations are free again, the header has the sum.
//
// Of values, the header has the sums of the exported periods.
//
// A period counts as exported once it, and all before it, have been delivered or dropped.
class ExportMarks {
 public:
  // The periods that may wait for an export. The oldest one beyond that has been dropped.
  static constexpr std::size_t kMaxPeriods = 8;
  // The last that is known of a thread's CPU clock; -1 if unknown.
  using ReadClock = std::function<std::int64_t(std::uint64_t thread_id)>;

  explicit ExportMarks(const SharedArea& area) : area_(area) {}

  // A thread's account begins.
  void Begin(std::uint32_t index, std::uint64_t thread_id);
  // All accounts have been settled, and the period has ended. `sums` are its values, by value type.
  void EndPeriod(std::uint64_t sequence, std::span<const std::int64_t> sums, std::int64_t now_ns,
                 const ReadClock& read_clock);
  void NoteExported(std::uint64_t sequence);
  // The thread has ended, and its account is settled. Makes the registration free.
  void GiveBack(std::uint32_t index);
  // The periods that have ended count as exported. There is no later one, and the area is another
  // worker's from now on.
  void End();

 private:
  struct Clocks {
    std::int64_t monotonic_ns = 0;
    std::int64_t cpu_ns = -1;
  };
  struct Period {
    std::uint64_t sequence = 0;
    bool is_exported = false;
    std::vector<std::pair<std::uint32_t, Clocks>> clocks;  // by registration, at the period's end
    std::int64_t ended_cpu_ns = 0;                    // of threads whose registrations are free
    std::array<std::int64_t, kMaxValueTypes> sums{};  // by value type
  };

  static void MoveTo(SharedRegistration& shared, const Clocks& clocks);
  // The part of the registration's thread up to `clocks` becomes that of a thread without a
  // registration.
  void End(Period& period, SharedRegistration& shared, const Clocks& clocks);
  void AddUnexported(std::int64_t cpu_ns);
  // Forgets the periods at the front that are exported.
  void PopExported();

  const SharedArea area_;
  std::mutex mutex_;
  std::unordered_map<std::uint32_t, std::uint64_t> threads_;  // by registration
  std::deque<Period> periods_;     // that have ended: as many as wait for an output
  std::int64_t ended_cpu_ns_ = 0;  // of the current period
};

}  // namespace internal
}  // namespace strobe
