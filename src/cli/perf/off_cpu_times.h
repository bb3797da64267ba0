// OffCpuTimes: how long threads were off a CPU, by the switches off it and onto it again.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

#include "absl/container/flat_hash_map.h"

namespace strobe::internal {

class OffCpuTimes {
 public:
  // Further threads are not followed.
  static constexpr std::size_t kMaxThreads = std::size_t{1} << 20;

  // Where a thread went off its CPU: numbers of a stack and of a set of labels in a profile.
  struct Place {
    std::uint32_t stack = 0;
    std::uint32_t labels = 0;
  };
  struct Absence {
    Place place;
    std::uint64_t duration_ns = 0;
  };

  // Times are those of the records, in nanoseconds. A thread that leaves again, without a return in
  // between, has been on a CPU for a while that is unknown: its first absence does not count.
  void Leave(std::uint32_t thread, Place place, std::uint64_t time_ns) {
    if (threads_.size() < kMaxThreads || threads_.contains(thread))
      threads_.insert_or_assign(thread, Since{place, time_ns});
  }
  // Nothing if no record says that the thread has left.
  std::optional<Absence> Return(std::uint32_t thread, std::uint64_t time_ns) {
    const auto found = threads_.find(thread);
    if (found == threads_.end()) return std::nullopt;
    const Absence absence = Until(found->second, time_ns);
    threads_.erase(found);
    return absence;
  }
  // The thread has ended.
  void Forget(std::uint32_t thread) { threads_.erase(thread); }

  // Visits the absences that last until `time_ns`.
  template <class Visit>
  void VisitAbsent(std::uint64_t time_ns, Visit visit) const {
    for (const auto& [thread, since] : threads_) visit(Until(since, time_ns));
  }

 private:
  struct Since {
    Place place;
    std::uint64_t time_ns = 0;
  };

  static Absence Until(const Since& since, std::uint64_t time_ns) {
    return {since.place, time_ns > since.time_ns ? time_ns - since.time_ns : 0};
  }

  absl::flat_hash_map<std::uint32_t, Since> threads_;
};

}  // namespace strobe::internal
