#include "absl_mutexes.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <system_error>
#include <thread>

#include "absl/synchronization/mutex.h"
#include "absl_mutex.h"
#include "strobe/base/signal_safe.h"
#include "strobe/clock/system_clock.h"
#include "strobe/locks/profiled.h"

namespace strobe::internal {
namespace {

// Abseil tells how long a wait was by a clock of its own, whose rate is internal to Abseil. So the
// rate is measured, by waits of known length. A rate is too low, by any amount, if the waiting
// thread loses its CPU before it waits. So there are as many waits as it takes, until the highest
// rates of a few agree.
constexpr std::chrono::milliseconds kMeasuredWait{3};
constexpr int kAgreeingWaits = 3;
constexpr double kAgreement = 0.99;
constexpr int kMostWaits = 20;

constinit std::atomic<bool> is_on{false};
constinit std::atomic<double> cycles_per_ns{0};  // 0 until it has been measured
// What the hook was last told on this thread, while the rate is measured here.
constinit thread_local std::int64_t* measured_cycles = nullptr;

// Called by the thread that has unlocked a mutex and woken who waited, with the sum of their waits.
// The mutex is free already.
[[gnu::noinline]] void OnContention(std::int64_t wait_cycles) {
  if (measured_cycles != nullptr) {
    *measured_cycles = wait_cycles;
    return;
  }
  if (!is_on.load(std::memory_order_relaxed)) return;
  const double rate = cycles_per_ns.load(std::memory_order_relaxed);
  NoteContention(static_cast<std::int64_t>(static_cast<double>(wait_cycles) / rate));
  asm volatile("" ::: "memory");  // no tail call: the number of frames is fixed
}

// Has another thread wait for a mutex. Returns a rate that is too low by what that thread did
// between its look at the clock and its wait; 0 if the hook has not been called.
double MeasureOnce() {
  const SystemClock clock;
  absl::Mutex mutex;
  std::atomic<std::int64_t> begin_ns{0};
  std::int64_t cycles = 0;
  LockMutex(mutex);
  std::thread waiter([&] {
    begin_ns.store(clock.MonotonicNs(), std::memory_order_release);
    LockMutex(mutex);
    UnlockMutex(mutex);
  });
  while (begin_ns.load(std::memory_order_acquire) == 0) std::this_thread::yield();
  std::this_thread::sleep_for(kMeasuredWait);
  measured_cycles = &cycles;
  UnlockMutex(mutex);
  const std::int64_t end_ns = clock.MonotonicNs();
  measured_cycles = nullptr;
  waiter.join();
  return static_cast<double>(cycles) / static_cast<double>(end_ns - begin_ns.load());
}

// The highest rate of those measured.
double MeasureRate() {
  std::array<double, kMostWaits> rates{};
  double highest = 0;
  try {
    for (double& rate : rates) {
      rate = MeasureOnce();
      highest = std::max(highest, rate);
      const auto agrees = [highest](double other) { return other > kAgreement * highest; };
      if (std::ranges::count_if(rates, agrees) >= kAgreeingWaits) break;
    }
  } catch (const std::system_error&) {
    return 0;  // no thread can be had
  }
  return highest;
}

}  // namespace

void SetAbslMutexSampling(bool is_wanted) {
  if (is_wanted && cycles_per_ns.load(std::memory_order_relaxed) == 0) {
    absl::RegisterMutexProfiler(&OnContention);
    cycles_per_ns.store(MeasureRate(), std::memory_order_relaxed);
  }
  is_on.store(is_wanted && cycles_per_ns.load(std::memory_order_relaxed) > 0,
              std::memory_order_relaxed);
}

bool IsSamplingAbslMutexes() { return is_on.load(std::memory_order_relaxed); }

}  // namespace strobe::internal
