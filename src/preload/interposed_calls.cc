// The calls of the program that the library sees, and the library's own, which pass it by.
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <threads.h>
#include <unistd.h>

#include <cstdint>
#include <cstring>

#include "../platform/linux/signals/ending_signals.h"
#include "../platform/started_thread.h"
#include "exec/recorded_environment.h"
#include "next.h"
#include "process_session.h"
#include "signal_masks.h"

namespace {

using strobe::internal::AwaitSignals;
using strobe::internal::BeginProcess;
using strobe::internal::DelayedEnd;
using strobe::internal::DelaysEnd;
using strobe::internal::EndBeforeExit;
using strobe::internal::GiveUpSignal;
using strobe::internal::HiddenMask;
using strobe::internal::InheritMask;
using strobe::internal::KeepRecordedEnvironment;
using strobe::internal::Next;
using strobe::internal::RegisterThisThread;
using strobe::internal::RenameThisThread;
using strobe::internal::SetMask;
using strobe::internal::SetMaskOfProgram;
using strobe::internal::StartThread;

using CreateThread = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
using CreateC11Thread = int(thrd_t*, thrd_start_t, void*);
using SetName = int(pthread_t, const char*);
using SetAction = int(int, const struct sigaction*, struct sigaction*);
using SetHandler = sighandler_t(int, sighandler_t);
constinit Next<CreateThread> next_create{"pthread_create"};
constinit Next<CreateC11Thread> next_create_c11{"thrd_create"};
constinit Next<SetName> next_set_name{"pthread_setname_np"};
constinit Next<SetAction> next_set_action{"sigaction"};
constinit Next<SetHandler> next_set_handler{"signal"};
constinit Next<int(const pthread_attr_t*, sigset_t*)> get_mask{
    "pthread_attr_getsigmask_np"};  // glibc 2.32
constinit Next<SetMask> next_set_mask{"pthread_sigmask"};
constinit Next<SetMask> next_set_process_mask{"sigprocmask"};
constinit Next<int(const sigset_t*, int*)> next_wait{"sigwait"};
constinit Next<int(const sigset_t*, siginfo_t*)> next_wait_info{"sigwaitinfo"};
constinit Next<int(const sigset_t*, siginfo_t*, const timespec*)> next_wait_until{"sigtimedwait"};
constinit Next<int(int, const sigset_t*, int)> next_signal_file{"signalfd"};

// Calls create(routine, argument), which returns 0 if it has started a thread. That begins with a
// mask of which `hidden_mask` is hidden: see signal_masks.h.
template <class Result, class Create>
int CreateRegistered(Result (*routine)(void*), void* argument, std::uint64_t hidden_mask,
                     const Create& create) {
  BeginProcess();  // a library's constructor may start threads before this library's
  const auto begin = [hidden_mask] {
    InheritMask(hidden_mask);
    RegisterThisThread();
  };
  return StartThread(routine, argument, begin, create);
}

// True if a thread begins with a mask of the attributes', not with its creator's.
bool HasMask(const pthread_attr_t* attributes) {
  sigset_t mask;
  return attributes != nullptr && *get_mask != nullptr && (*get_mask)(attributes, &mask) == 0;
}

// To the program, a signal that exports before it ends the process has its default action. So it
// has, too, when the program gives it that action.
int SetActionOfProgram(int number, const struct sigaction* action, struct sigaction* before) {
  const bool is_default =
      action != nullptr && (action->sa_flags & SA_SIGINFO) == 0 && action->sa_handler == SIG_DFL;
  const struct sigaction* const delayed = is_default ? DelayedEnd(number) : nullptr;
  const int error = (*next_set_action)(number, delayed != nullptr ? delayed : action, before);
  if (error == 0 && before != nullptr && DelaysEnd(*before)) *before = {};
  if (error == 0 && action != nullptr) GiveUpSignal(number);
  return error;
}

[[noreturn]] void Exit(int status) {
  EndBeforeExit();
  for (;;) syscall(SYS_exit_group, status);
}

// The loader runs this library's constructors before all others (-z initfirst), so that these are
// sampled, too. The C library's own, which comes later, sets these variables, and as here.
void BeginCLibrary(int count, char** arguments, char** environment) {
  environ = environment;
  if (count < 1) return;
  program_invocation_name = arguments[0];
  char* const last = std::strrchr(arguments[0], '/');
  program_invocation_short_name = last == nullptr ? arguments[0] : last + 1;
}

// The library's constructors of static objects have no priority, so they run before. The program
// may set actions in a handler, where nothing may be looked up.
__attribute__((constructor(65535))) void Load(int count, char** arguments, char** environment) {
  if (environ == nullptr) BeginCLibrary(count, arguments, environment);
  KeepRecordedEnvironment(environment);
  static_cast<void>(*next_set_action);
  static_cast<void>(*next_set_handler);
  static_cast<void>(*next_set_mask);
  static_cast<void>(*next_set_process_mask);
  static_cast<void>(*get_mask);
  BeginProcess();
}

}  // namespace

#pragma GCC visibility push(default)
extern "C" {

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*routine)(void*),
                   void* argument) noexcept {
  const std::uint64_t hidden_mask = HasMask(attributes) ? 0 : HiddenMask();
  return CreateRegistered(routine, argument, hidden_mask, [=](void* (*run)(void*), void* start) {
    return (*next_create)(thread, attributes, run, start);
  });
}

// The C library's own calls no pthread_create that could be interposed.
int thrd_create(thrd_t* thread, thrd_start_t routine, void* argument) {
  static_assert(thrd_success == 0);
  return CreateRegistered(routine, argument, HiddenMask(), [=](thrd_start_t run, void* start) {
    return (*next_create_c11)(thread, run, start);
  });
}

int pthread_setname_np(pthread_t thread, const char* name) noexcept {
  const int error = (*next_set_name)(thread, name);
  if (error == 0 && pthread_equal(thread, pthread_self()) != 0) RenameThisThread();
  return error;
}

int sigaction(int number, const struct sigaction* action, struct sigaction* before) noexcept {
  return SetActionOfProgram(number, action, before);
}

sighandler_t signal(int number, sighandler_t handler) noexcept {
  if (handler == SIG_DFL && DelayedEnd(number) != nullptr) {
    struct sigaction action {};
    struct sigaction before {};
    return SetActionOfProgram(number, &action, &before) == 0 ? before.sa_handler : SIG_ERR;
  }
  struct sigaction before {};
  before.sa_handler = (*next_set_handler)(number, handler);
  GiveUpSignal(number);
  return DelaysEnd(before) ? SIG_DFL : before.sa_handler;
}

int pthread_sigmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return SetMaskOfProgram(**next_set_mask, how, set, before);
}

int sigprocmask(int how, const sigset_t* set, sigset_t* before) noexcept {
  return SetMaskOfProgram(**next_set_process_mask, how, set, before);
}

int sigwait(const sigset_t* set, int* number) {
  AwaitSignals(*set);
  return (*next_wait)(set, number);
}

int sigwaitinfo(const sigset_t* set, siginfo_t* info) {
  AwaitSignals(*set);
  return (*next_wait_info)(set, info);
}

int sigtimedwait(const sigset_t* set, siginfo_t* info, const timespec* limit) {
  AwaitSignals(*set);
  return (*next_wait_until)(set, info, limit);
}

int signalfd(int file, const sigset_t* set, int flags) noexcept {
  AwaitSignals(*set);
  return (*next_signal_file)(file, set, flags);
}

void _exit(int status) { Exit(status); }
void _Exit(int status) noexcept { Exit(status); }

}  // extern "C"
#pragma GCC visibility pop

// What this library itself calls by these names: the linker's option --wrap says so.
extern "C" int __wrap_pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                                     void* (*routine)(void*), void* argument) {
  return (*next_create)(thread, attributes, routine, argument);
}
extern "C" int __wrap_sigaction(int number, const struct sigaction* action,
                                struct sigaction* before) {
  return (*next_set_action)(number, action, before);
}
extern "C" int __wrap_pthread_setname_np(pthread_t thread, const char* name) {
  return (*next_set_name)(thread, name);
}
extern "C" int __wrap_pthread_sigmask(int how, const sigset_t* set, sigset_t* before) {
  return (*next_set_mask)(how, set, before);
}
