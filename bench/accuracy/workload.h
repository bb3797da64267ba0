// Programs whose truth is known: threads that divide their CPU time between two functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "strobe/core/profile.h"

namespace strobe::testing {

// The CPU time of one thread in A and in B, by its own clock.
struct Truth {
  std::int64_t a_ns = 0;
  std::int64_t b_ns = 0;
  [[nodiscard]] double share() const {
    return a_ns + b_ns > 0 ? static_cast<double>(a_ns) / static_cast<double>(a_ns + b_ns) : 0;
  }
};

// Work for so long by the calling thread's clock, in a function that a profile shows.
void WorkInA(std::int64_t cpu_ns, Truth& truth);
void WorkInB(std::int64_t cpu_ns, Truth& truth);
// True if the address lies in that function.
bool IsInA(Address address);
bool IsInB(Address address);
// Where A and B are.
struct Bounds {
  Address low = 0;
  Address high = 0;
};
std::pair<Bounds, Bounds> WorkBounds();

// Wakes at multiples of `period_ns`, works for half of it, 30 % of that in A, and waits again. The
// kernel's tick falls on a fixed phase of the same clock, so `phase_ns` is the phase against it.
struct Loop {
  std::int64_t period_ns = 4'000'000;
  std::int64_t phase_ns = 0;
  std::int64_t time_ns = 2'000'000'000;  // in all
};
Truth RunLoop(const Loop& loop);

// Computes in B, and makes one system call in A after each `every_ns` of that. A sampler that comes
// to its turn where its victim leaves the kernel sees more of A than there is.
struct Calls {
  enum class Kind : std::uint8_t { kGetppid, kReadClock, kWrite };
  Kind kind = Kind::kGetppid;
  std::int64_t every_ns = 60'000;
  std::int64_t time_ns = 1'500'000'000;  // in all
};
Truth RunCalls(const Calls& calls);

// Processes that keep CPUs busy until the object ends.
class OtherProcesses {
 public:
  explicit OtherProcesses(std::size_t count);
  ~OtherProcesses();
  OtherProcesses(const OtherProcesses&) = delete;
  OtherProcesses& operator=(const OtherProcesses&) = delete;

 private:
  std::vector<int> ids_;
};

}  // namespace strobe::testing
