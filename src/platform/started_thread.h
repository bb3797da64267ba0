// StartThread: what a function in front of pthread_create does, so that the thread first registers.
#pragma once

#include <cstdlib>
#include <new>
#include <type_traits>

namespace strobe::internal {

// What the thread is started with. A thread may be cancelled or exit in its routine, so nothing may
// need cleaning up then.
template <class Result, class Begin>
struct StartedThread {
  Result (*routine)(void*);
  void* argument;
  Begin begin;
};

// The call of the routine is a tail call, so the thread's stacks are those it would have.
template <class Result, class Begin>
Result RunStartedThread(void* allocated) {
  const auto thread = *static_cast<StartedThread<Result, Begin>*>(allocated);
  std::free(allocated);
  thread.begin();
  return thread.routine(thread.argument);
}

// Calls create(routine, argument), which returns 0 if it has started a thread: one that calls
// begin(), then `routine`. Without memory, the thread calls `routine` alone. Returns what create
// has returned.
template <class Result, class Begin, class Create>
int StartThread(Result (*routine)(void*), void* argument, const Begin& begin,
                const Create& create) {
  static_assert(std::is_trivially_copyable_v<Begin> && std::is_trivially_destructible_v<Begin>);
  using Thread = StartedThread<Result, Begin>;
  auto* const thread = static_cast<Thread*>(std::malloc(sizeof(Thread)));
  if (thread == nullptr) return create(routine, argument);
  ::new (thread) Thread{.routine = routine, .argument = argument, .begin = begin};
  const int error = create(&RunStartedThread<Result, Begin>, thread);
  if (error != 0) std::free(thread);
  return error;
}

}  // namespace strobe::internal
