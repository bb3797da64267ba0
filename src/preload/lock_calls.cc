// The C library's locks and conditions, in front of the program: what waits is sampled.
//
// A lock that is free costs what it costs without this library, and a jump: it is asked for by the
// function that does not wait. Only a thread that has to wait reads the clock.
#include <errno.h>
#include <pthread.h>
#include <threads.h>
#include <time.h>

#include <cstdint>

#include "../platform/own_threads.h"
#include "next.h"
#include "strobe/base/signal_safe.h"
#include "strobe/clock/system_clock.h"
#include "strobe/locks/contention_sampling.h"
#include "strobe/locks/profiled.h"
#include "strobe/platform/native.h"

namespace {

using strobe::NativePlatform;
using strobe::SystemClock;
using strobe::internal::IsOnOwnThread;
using strobe::internal::IsSamplingConditions;
using strobe::internal::IsSamplingContentions;
using strobe::internal::Next;
using strobe::internal::NoteConditionWait;
using strobe::internal::NoteContention;

using Mutex = pthread_mutex_t;
using ReadWriteLock = pthread_rwlock_t;
using Condition = pthread_cond_t;

// The version of x86-64 that has the conditions of today.
constexpr const char* kConditions = "GLIBC_2.3.2";

constinit Next<int(Mutex*)> try_mutex{"pthread_mutex_trylock"};
constinit Next<int(Mutex*)> lock_mutex{"pthread_mutex_lock"};
constinit Next<int(Mutex*, const timespec*)> timed_mutex{"pthread_mutex_timedlock"};
constinit Next<int(Mutex*, clockid_t, const timespec*)> clock_mutex{"pthread_mutex_clocklock"};
constinit Next<int(ReadWriteLock*)> try_read{"pthread_rwlock_tryrdlock"};
constinit Next<int(ReadWriteLock*)> lock_read{"pthread_rwlock_rdlock"};
constinit Next<int(ReadWriteLock*, const timespec*)> timed_read{"pthread_rwlock_timedrdlock"};
constinit Next<int(ReadWriteLock*, clockid_t, const timespec*)> clock_read{
    "pthread_rwlock_clockrdlock"};
constinit Next<int(ReadWriteLock*)> try_write{"pthread_rwlock_trywrlock"};
constinit Next<int(ReadWriteLock*)> lock_write{"pthread_rwlock_wrlock"};
constinit Next<int(ReadWriteLock*, const timespec*)> timed_write{"pthread_rwlock_timedwrlock"};
constinit Next<int(ReadWriteLock*, clockid_t, const timespec*)> clock_write{
    "pthread_rwlock_clockwrlock"};
constinit Next<int(Condition*, Mutex*)> wait_condition{"pthread_cond_wait", kConditions};
constinit Next<int(Condition*, Mutex*, const timespec*)> timed_condition{"pthread_cond_timedwait",
                                                                         kConditions};
constinit Next<int(Condition*, Mutex*, clockid_t, const timespec*)> clock_condition{
    "pthread_cond_clockwait"};
constinit Next<int(mtx_t*)> try_c11{"mtx_trylock"};
constinit Next<int(mtx_t*)> lock_c11{"mtx_lock"};
constinit Next<int(mtx_t*, const timespec*)> timed_c11{"mtx_timedlock"};
constinit Next<int(cnd_t*, mtx_t*)> wait_c11{"cnd_wait"};
constinit Next<int(cnd_t*, mtx_t*, const timespec*)> timed_c11_condition{"cnd_timedwait"};

// What wait() returns. Its time is told to `note` if `is_sampling`. The stack of the sample begins
// at the caller of the function that this is a part of. A mutex that its own thread asks for once
// more gives an error at once: that is no wait.
template <class Wait, class Note>
STROBE_ALWAYS_INLINE int Timed(bool is_sampling, const Note& note, const Wait& wait) {
  if (!is_sampling) return wait();
  const std::int64_t begin_ns = SystemClock().MonotonicNs();
  const int result = wait();
  const int saved_errno = errno;
  // The profiler's own threads wait, too.
  if (result != EDEADLK && !IsOnOwnThread<NativePlatform>())
    note(SystemClock().MonotonicNs() - begin_ns);
  errno = saved_errno;
  asm volatile("" ::: "memory");  // no tail call: the number of frames is fixed
  return result;
}
template <class Wait>
STROBE_ALWAYS_INLINE int TimedLock(const Wait& wait) {
  return Timed(IsSamplingContentions(), NoteContention, wait);
}
template <class Wait>
STROBE_ALWAYS_INLINE int TimedCondition(const Wait& wait) {
  return Timed(IsSamplingConditions(), NoteConditionWait, wait);
}

// Whether a lock that is free is given whatever these say. The C library judges them first.
bool IsTime(const timespec* until) { return until->tv_nsec >= 0 && until->tv_nsec < 1'000'000'000; }
bool IsTime(clockid_t clock, const timespec* until) {
  return (clock == CLOCK_REALTIME || clock == CLOCK_MONOTONIC) && IsTime(until);
}
bool IsTime() { return true; }

// Asks for a lock by `try_lock`, and only if that finds it taken by `lock`.
template <int kTaken = EBUSY, class Lock, class... Arguments>
STROBE_ALWAYS_INLINE int LockBy(Next<int(Lock*)>& try_lock, Next<int(Lock*, Arguments...)>& lock,
                                Lock* taken, Arguments... arguments) {
  if (!IsTime(arguments...)) return *lock == nullptr ? EINVAL : (*lock)(taken, arguments...);
  const int result = (*try_lock)(taken);
  if (result != kTaken) [[likely]]
    return result;
  return TimedLock([&] { return (*lock)(taken, arguments...); });
}

// The program may hold a lock when it waits first, and the loader another one.
template <class... Functions>
void Find(Functions&... functions) {
  (static_cast<void>(*functions), ...);
}
__attribute__((constructor(65535))) void FindAll() {
  Find(try_mutex, lock_mutex, timed_mutex, clock_mutex, try_read, lock_read, timed_read, clock_read,
       try_write, lock_write, timed_write, clock_write, wait_condition, timed_condition,
       clock_condition, try_c11, lock_c11, timed_c11, wait_c11, timed_c11_condition);
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int pthread_mutex_lock(Mutex* mutex) noexcept { return LockBy(try_mutex, lock_mutex, mutex); }
int pthread_mutex_timedlock(Mutex* mutex, const timespec* until) noexcept {
  return LockBy(try_mutex, timed_mutex, mutex, until);
}
int pthread_mutex_clocklock(Mutex* mutex, clockid_t clock, const timespec* until) noexcept {
  return LockBy(try_mutex, clock_mutex, mutex, clock, until);
}

int pthread_rwlock_rdlock(ReadWriteLock* lock) noexcept {
  return LockBy(try_read, lock_read, lock);
}
int pthread_rwlock_timedrdlock(ReadWriteLock* lock, const timespec* until) noexcept {
  return LockBy(try_read, timed_read, lock, until);
}
int pthread_rwlock_clockrdlock(ReadWriteLock* lock, clockid_t clock,
                               const timespec* until) noexcept {
  return LockBy(try_read, clock_read, lock, clock, until);
}
int pthread_rwlock_wrlock(ReadWriteLock* lock) noexcept {
  return LockBy(try_write, lock_write, lock);
}
int pthread_rwlock_timedwrlock(ReadWriteLock* lock, const timespec* until) noexcept {
  return LockBy(try_write, timed_write, lock, until);
}
int pthread_rwlock_clockwrlock(ReadWriteLock* lock, clockid_t clock,
                               const timespec* until) noexcept {
  return LockBy(try_write, clock_write, lock, clock, until);
}

// A thread may be cancelled here.
int pthread_cond_wait(Condition* condition, Mutex* mutex) {
  return TimedCondition([&] { return (*wait_condition)(condition, mutex); });
}
int pthread_cond_timedwait(Condition* condition, Mutex* mutex, const timespec* until) {
  return TimedCondition([&] { return (*timed_condition)(condition, mutex, until); });
}
int pthread_cond_clockwait(Condition* condition, Mutex* mutex, clockid_t clock,
                           const timespec* until) {
  return TimedCondition([&] { return (*clock_condition)(condition, mutex, clock, until); });
}

// The C library's own call no function of POSIX threads that could be interposed.
int mtx_lock(mtx_t* mutex) { return LockBy<thrd_busy>(try_c11, lock_c11, mutex); }
int mtx_timedlock(mtx_t* mutex, const timespec* until) {
  return LockBy<thrd_busy>(try_c11, timed_c11, mutex, until);
}
int cnd_wait(cnd_t* condition, mtx_t* mutex) {
  return TimedCondition([&] { return (*wait_c11)(condition, mutex); });
}
int cnd_timedwait(cnd_t* condition, mtx_t* mutex, const timespec* until) {
  return TimedCondition([&] { return (*timed_c11_condition)(condition, mutex, until); });
}

}  // extern "C"
#pragma GCC visibility pop

// What this library itself calls by these names: the linker's option --wrap says so.
extern "C" int __wrap_pthread_mutex_lock(Mutex* mutex) { return (*lock_mutex)(mutex); }
extern "C" int __wrap_pthread_rwlock_rdlock(ReadWriteLock* lock) { return (*lock_read)(lock); }
extern "C" int __wrap_pthread_rwlock_wrlock(ReadWriteLock* lock) { return (*lock_write)(lock); }
extern "C" int __wrap_pthread_cond_wait(Condition* condition, Mutex* mutex) {
  return (*wait_condition)(condition, mutex);
}
extern "C" int __wrap_pthread_cond_timedwait(Condition* condition, Mutex* mutex,
                                             const timespec* until) {
  return (*timed_condition)(condition, mutex, until);
}
extern "C" int __wrap_pthread_cond_clockwait(Condition* condition, Mutex* mutex, clockid_t clock,
                                             const timespec* until) {
  return (*clock_condition)(condition, mutex, clock, until);
}
