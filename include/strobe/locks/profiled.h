// Profiled: a mutex whose waits are sampled while a ContentionSampling lives.
//
//   strobe::Profiled<std::mutex> mutex;
//   std::lock_guard lock(mutex);
//
// A program that uses Profiled links strobe_locks_dep.
#pragma once

#include <chrono>
#include <cstdint>
#include <type_traits>

#include "strobe/base/signal_safe.h"
#include "strobe/base/visibility.h"
#include "strobe/clock/system_clock.h"

namespace strobe {

namespace STROBE_HIDDEN internal {

// True while a ContentionSampling lives.
[[nodiscard]] bool IsSamplingContentions() noexcept;

// Samples a wait of the calling thread that has just ended. The stack begins at the caller of the
// function that calls this one by no tail call. Signal-safe: takes no lock.
[[gnu::noinline]] void NoteContention(std::int64_t delay_ns) noexcept;

// Calls wait(), which waits for a lock, and returns what it returns.
template <class Wait>
[[gnu::noinline]] auto WaitForLock(const Wait& wait) {
  if (!IsSamplingContentions()) return wait();
  const std::int64_t begin_ns = SystemClock().MonotonicNs();
  const auto note = [begin_ns]() STROBE_ALWAYS_INLINE_LAMBDA {
    NoteContention(SystemClock().MonotonicNs() - begin_ns);
    asm volatile("" ::: "memory");  // no tail call: the number of frames is fixed
  };
  if constexpr (std::is_void_v<decltype(wait())>) {
    wait();
    note();
  } else {
    const auto result = wait();
    note();
    return result;
  }
}

template <class Mutex>
concept TimedMutex = requires(Mutex& mutex) {
  mutex.try_lock_for(std::chrono::nanoseconds());
  mutex.try_lock_until(std::chrono::steady_clock::time_point());
};
template <class Mutex>
concept SharedMutex = requires(Mutex& mutex) {
  mutex.lock_shared();
  mutex.try_lock_shared();
  mutex.unlock_shared();
};
template <class Mutex>
concept SharedTimedMutex = SharedMutex<Mutex> && requires(Mutex& mutex) {
  mutex.try_lock_shared_for(std::chrono::nanoseconds());
  mutex.try_lock_shared_until(std::chrono::steady_clock::time_point());
};

}  // namespace internal

// A drop-in for Mutex: std::mutex, std::recursive_mutex, std::shared_mutex, their timed forms, or
// another class with their functions. Has those of the functions that Mutex has, which do and throw
// what those of Mutex do. std::condition_variable_any waits with it.
//
// Each function that may wait calls the one that does not wait first, and costs nothing more if
// that succeeds. Otherwise the wait is a contention, also if it ends without the lock. The sample
// of a wait is taken when it ends: by the thread that has waited, while it holds the lock.
template <class Mutex>
class Profiled {
 public:
  Profiled() = default;
  Profiled(const Profiled&) = delete;
  Profiled& operator=(const Profiled&) = delete;

  STROBE_ALWAYS_INLINE void lock() {
    if (mutex_.try_lock()) [[likely]]
      return;
    internal::WaitForLock([this] { mutex_.lock(); });
    asm volatile("" ::: "memory");  // no tail call: the caller stays in the stack
  }
  [[nodiscard]] bool try_lock() { return mutex_.try_lock(); }
  void unlock() { mutex_.unlock(); }

  template <class Rep, class Period>
  [[nodiscard]] STROBE_ALWAYS_INLINE bool try_lock_for(
      const std::chrono::duration<Rep, Period>& duration) requires internal::TimedMutex<Mutex> {
    return mutex_.try_lock() || Wait([&] { return mutex_.try_lock_for(duration); });
  }
  template <class Clock, class Duration>
  [[nodiscard]] STROBE_ALWAYS_INLINE bool try_lock_until(
      const std::chrono::time_point<Clock, Duration>& time) requires internal::TimedMutex<Mutex> {
    return mutex_.try_lock() || Wait([&] { return mutex_.try_lock_until(time); });
  }

  STROBE_ALWAYS_INLINE void lock_shared() requires internal::SharedMutex<Mutex> {
    if (mutex_.try_lock_shared()) [[likely]]
      return;
    internal::WaitForLock([this] { mutex_.lock_shared(); });
    asm volatile("" ::: "memory");
  }
  [[nodiscard]] bool try_lock_shared() requires internal::SharedMutex<Mutex> {
    return mutex_.try_lock_shared();
  }
  void unlock_shared() requires internal::SharedMutex<Mutex> { mutex_.unlock_shared(); }

  template <class Rep, class Period>
  [[nodiscard]] STROBE_ALWAYS_INLINE bool try_lock_shared_for(
      const std::chrono::duration<Rep, Period>& duration) requires
      internal::SharedTimedMutex<Mutex> {
    return mutex_.try_lock_shared() || Wait([&] { return mutex_.try_lock_shared_for(duration); });
  }
  template <class Clock, class Duration>
  [[nodiscard]] STROBE_ALWAYS_INLINE bool try_lock_shared_until(
      const std::chrono::time_point<Clock, Duration>& time) requires
      internal::SharedTimedMutex<Mutex> {
    return mutex_.try_lock_shared() || Wait([&] { return mutex_.try_lock_shared_until(time); });
  }

  // The handle of Mutex.
  [[nodiscard]] auto native_handle() requires requires(Mutex& mutex) { mutex.native_handle(); }
  { return mutex_.native_handle(); }

 private:
  template <class Lock>
  static STROBE_ALWAYS_INLINE bool Wait(const Lock& lock) {
    const bool is_locked = internal::WaitForLock(lock);
    asm volatile("" ::: "memory");
    return is_locked;
  }

  Mutex mutex_;
};

}  // namespace strobe
