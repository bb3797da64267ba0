// The functions that begin a thread, in front of the C library's: each thread registers for the CPU
// profile. Weak, so that a program that has functions of these names keeps them.
#include <errno.h>
#include <pthread.h>
#include <threads.h>

#include "../platform/own_threads.h"
#include "../platform/started_thread.h"
#include "../preload/next.h"
#include "cpu_profile.h"

namespace strobe::internal {
namespace {

constinit Next<int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*)> next_pthread_create{
    "pthread_create"};
constinit Next<int(thrd_t*, thrd_start_t, void*)> next_thrd_create{"thrd_create"};

// Calls create(routine, argument), which returns 0 if it has begun a thread.
template <class Result, class Create>
int CreateProfiled(Result (*routine)(void*), void* argument, const Create& create) {
  if (OwnThreadBegin::IsUnderWay()) return create(routine, argument);
  return StartThread(
      routine, argument, [] { RegisterForCpuProfile(); }, create);
}

}  // namespace
}  // namespace strobe::internal

#pragma GCC visibility push(default)
extern "C" {

// A program without shared libraries has no other function behind these.
[[gnu::weak]] int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                 void* (*routine)(void*), void* argument) noexcept {
  auto* const next = *strobe::internal::next_pthread_create;
  if (next == nullptr) return ENOSYS;
  return strobe::internal::CreateProfiled(routine, argument, [=](void* (*run)(void*), void* begun) {
    return next(thread, attributes, run, begun);
  });
}

// The C library's own calls no pthread_create that could be interposed.
[[gnu::weak]] int thrd_create(thrd_t* thread, thrd_start_t routine, void* argument) {
  auto* const next = *strobe::internal::next_thrd_create;
  if (next == nullptr) return thrd_error;
  return strobe::internal::CreateProfiled(
      routine, argument, [=](thrd_start_t run, void* begun) { return next(thread, run, begun); });
}

}  // extern "C"
#pragma GCC visibility pop
