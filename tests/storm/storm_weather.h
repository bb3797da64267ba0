// What the storm's threads do, one round at a time. All of it is what programs do; none of it knows
// of the profiler, but for the child of a fork that begins a session of its own.
#pragma once

#include "storm_parts.h"

namespace strobe::testing {

// Interrupts the calling thread, which is registered, at any instruction whatever, tens of
// thousands of times a second: a timer of the monotonic clock, in the name of ExpiryProvider.
class Pesterer {
 public:
  // Longer than a sample takes, or the thread would never get on.
  static constexpr long kPeriodNs = kIsSanitized ? 500'000 : 50'000;

  Pesterer();
  ~Pesterer();
  Pesterer(const Pesterer&) = delete;
  Pesterer& operator=(const Pesterer&) = delete;

 private:
  void* timer_ = nullptr;
};

// Exceptions through frames with destructors.
void ThrowAndCatch(int depth);
// Blocks of all sizes, kept for a while.
void Allocate(unsigned seed);
// Loads the library, calls it and unloads it. False where it cannot be loaded.
bool LoadCallUnload(const char* path);
// A signal whose handler runs on an alternate stack, and leaves it by its end or by a jump. The
// thread's first call sets its stack up.
void TakeSignals();
// Four coroutines, each on a stack of its own, take turns. Call from one thread only.
void SwitchCoroutines();
// A session of the library at `path`, which has a Strobe of its own and stays loaded. Null where
// all is well, else what is wrong.
const char* ProfileBySecondCopy(const char* path);
// A child that works and exits; every so many of them, it profiles itself. False where it failed.
bool ForkAndWait(StormProfiler& profiler, bool profiles_itself);

}  // namespace strobe::testing
