// A program that knows nothing of Strobe: recorded_program MODE [ARGUMENT]. Each mode does what its
// name says, and prints what a test compares with a run that is not recorded.
#include <pthread.h>
#include <signal.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <threads.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <thread>

extern char** environ;

extern "C" int StatusOfLibrary();  // of slow_library.cc

namespace {

constexpr double kBusySeconds = 0.25;

double CpuSeconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

volatile unsigned long sink;

// One function a thread, so that a profile shows which threads it has.
template <int kNumber>
[[gnu::noinline]] void Work(double seconds) {
  const double end = CpuSeconds(CLOCK_THREAD_CPUTIME_ID) + seconds;
  while (CpuSeconds(CLOCK_THREAD_CPUTIME_ID) < end) {
    for (unsigned long i = 0; i < 100'000; ++i) sink = sink + i * kNumber;
  }
}

extern "C" {
[[gnu::noinline]] void WorkOfMain() { Work<0>(kBusySeconds); }
[[gnu::noinline]] void* WorkOfPthread(void* result) {
  pthread_setname_np(pthread_self(), "named-thread");
  Work<1>(kBusySeconds);
  return result;
}
[[gnu::noinline]] int WorkOfC11(void* /*none*/) {
  Work<2>(kBusySeconds);
  return 5;
}
[[gnu::noinline]] void WorkOfCpp() { Work<3>(kBusySeconds); }
[[gnu::noinline]] void* WorkOfDetached(void* flag) {
  Work<4>(kBusySeconds);
  __atomic_store_n(static_cast<int*>(flag), 1, __ATOMIC_RELEASE);
  return nullptr;
}
[[gnu::noinline]] void* WorkOfCancelled(void* flag) {
  Work<5>(kBusySeconds);
  __atomic_store_n(static_cast<int*>(flag), 1, __ATOMIC_RELEASE);
  for (;;) pause();
}
[[gnu::noinline]] void* WorkOfExiting(void* result) {
  Work<6>(kBusySeconds);
  pthread_exit(result);
}
[[gnu::noinline]] void WorkOfChild() { Work<7>(kBusySeconds); }
}

void Await(const int& flag) {
  while (__atomic_load_n(&flag, __ATOMIC_ACQUIRE) == 0) std::this_thread::yield();
}

int RunThreads() {
  pthread_t handle;
  void* result = nullptr;
  int mark = 7;
  pthread_create(&handle, nullptr, &WorkOfPthread, &mark);
  pthread_join(handle, &result);
  std::printf("pthread: %d\n", *static_cast<int*>(result));

  thrd_t c11;
  int status = 0;
  thrd_create(&c11, &WorkOfC11, nullptr);
  thrd_join(c11, &status);
  std::printf("C11: %d\n", status);

  std::thread(&WorkOfCpp).join();

  pthread_attr_t detached;
  pthread_attr_init(&detached);
  pthread_attr_setdetachstate(&detached, PTHREAD_CREATE_DETACHED);
  int flag = 0;
  pthread_create(&handle, &detached, &WorkOfDetached, &flag);
  Await(flag);

  int is_waiting = 0;
  pthread_create(&handle, nullptr, &WorkOfCancelled, &is_waiting);
  Await(is_waiting);
  pthread_cancel(handle);
  pthread_join(handle, &result);
  std::printf("cancelled: %d\n", static_cast<int>(result == PTHREAD_CANCELED));

  pthread_create(&handle, nullptr, &WorkOfExiting, &mark);
  pthread_join(handle, &result);
  std::printf("exiting: %d\n", *static_cast<int*>(result));
  return 0;
}

// The time of two threads, by their own clocks.
int PrintUsage() {
  const double begin = CpuSeconds(CLOCK_THREAD_CPUTIME_ID);
  WorkOfMain();
  double of_other = 0;
  std::thread([&] {
    const double others_begin = CpuSeconds(CLOCK_THREAD_CPUTIME_ID);
    WorkOfCpp();
    of_other = CpuSeconds(CLOCK_THREAD_CPUTIME_ID) - others_begin;
  }).join();
  std::printf("%.9f\n", CpuSeconds(CLOCK_THREAD_CPUTIME_ID) - begin + of_other);
  return 0;
}

constexpr std::size_t kBlockBytes = std::size_t{512} << 10;

extern "C" {
// 200 MiB, of which nothing stays.
[[gnu::noinline]] void MakeGarbage() {
  for (int i = 0; i < 400; ++i) {
    void* block = std::malloc(kBlockBytes);
    asm volatile("" : "+r"(block) : : "memory");
    std::free(block);
  }
}
// 100 MiB, which stay. The system gives no memory for what is not touched.
[[gnu::noinline]] void KeepBlocks() {
  for (int i = 0; i < 200; ++i) {
    void* block = std::malloc(kBlockBytes);
    asm volatile("" : "+r"(block) : : "memory");
  }
}
}

int EndBy(const char* how) {
  WorkOfMain();
  const std::string name = how;
  if (name == "exit") std::exit(3);
  if (name == "_exit") _exit(4);
  if (name == "_Exit") _Exit(5);
  if (name == "quick_exit") std::quick_exit(6);
  if (name == "abort") std::abort();
  if (name == "SIGSEGV") raise(SIGSEGV);
  if (name == "SIGTERM") raise(SIGTERM);
  if (name == "SIGKILL") raise(SIGKILL);
  return 2;
}

// A child that works, one that a vfork starts and that ends at once, and one that execs.
int RunForks(const char* self) {
  const pid_t working = fork();
  if (working == 0) {
    WorkOfChild();
    _exit(8);
  }
  const pid_t vforked = vfork();
  if (vforked == 0) _exit(9);
  const pid_t executing = fork();
  if (executing == 0) {
    execl(self, self, "end", "return", nullptr);
    _exit(10);
  }
  for (const pid_t child : {working, vforked, executing}) {
    int status = 0;
    waitpid(child, &status, 0);
    std::printf("%d\n", WEXITSTATUS(status));
  }
  WorkOfMain();
  return 0;
}

// What a program can see of how it was started.
int PrintSurroundings() {
  for (char** variable = environ; *variable != nullptr; ++variable) std::puts(*variable);
  sigset_t mask;
  sigprocmask(SIG_SETMASK, nullptr, &mask);
  for (int signal = 1; signal < NSIG; ++signal) {
    struct sigaction action {};
    sigaction(signal, nullptr, &action);
    const char* const kind = action.sa_handler == SIG_DFL   ? "default"
                             : action.sa_handler == SIG_IGN ? "ignored"
                                                            : "handled";
    std::printf("signal %d: %s, blocked %d\n", signal, kind, sigismember(&mask, signal));
  }
  std::printf("group leader: %d, session: %d\n", static_cast<int>(getpgrp() == getpid()),
              static_cast<int>(getsid(0) == getpid()));
  return 0;
}

// Prints a line, and waits for a signal, whose number is the status.
int AwaitSignal() {
  sigset_t signals;
  sigemptyset(&signals);
  for (const int signal : {SIGTERM, SIGUSR1, SIGHUP}) sigaddset(&signals, signal);
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  std::puts("ready");
  std::fflush(stdout);
  return sigwaitinfo(&signals, nullptr);
}

// Works, prints a line, and waits for ever, unless a handler lets it go on.
int WaitForEver() {
  WorkOfMain();
  std::puts("ready");
  std::fflush(stdout);
  pause();
  std::puts("went on");
  return 0;
}

// Works so many seconds, and prints by the thread's clock how many.
int WorkFor(double seconds) {
  const double begin = CpuSeconds(CLOCK_THREAD_CPUTIME_ID);
  Work<1>(seconds);
  std::printf("%.9f\n", CpuSeconds(CLOCK_THREAD_CPUTIME_ID) - begin);
  return 0;
}

// Prints a line, waits for the end of its input, works, and prints how long by the thread's clock.
int WorkWhenTold() {
  std::puts("ready");
  std::fflush(stdout);
  while (std::getchar() != EOF) {
  }
  const double begin = CpuSeconds(CLOCK_THREAD_CPUTIME_ID);
  WorkOfMain();
  std::printf("%.9f\n", CpuSeconds(CLOCK_THREAD_CPUTIME_ID) - begin);
  return 0;
}

// Works as another user.
int BecomeNobody() {
  constexpr uid_t kNobody = 65534;
  if (setgid(kNobody) != 0 || setuid(kNobody) != 0) return 1;
  WorkOfMain();
  return 0;
}

// Works where that directory is the root of the file system.
int ChangeRoot(const char* directory) {
  if (chroot(directory) != 0 || chdir("/") != 0) return 1;
  WorkOfMain();
  return 0;
}

// Ends by _exit in the handler of a signal that has interrupted an allocator.
int ExitInHandler() {
  signal(SIGVTALRM, [](int /*signal*/) { _exit(11); });
  itimerval timer{};
  timer.it_value.tv_usec = 200'000;
  setitimer(ITIMER_VIRTUAL, &timer, nullptr);
  for (;;) {
    std::map<int, std::string> blocks;
    for (int i = 0; i < 1000; ++i) blocks[i] = std::string(100, 'x');
    sink = blocks.size();
  }
}

}  // namespace

int main(int count, char** arguments) {
  const std::string mode = count > 1 ? arguments[1] : "";
  if (mode == "threads") return RunThreads();
  if (mode == "usage") return PrintUsage();
  if (mode == "library") return StatusOfLibrary();
  if (mode == "end" && count > 2) return EndBy(arguments[2]);
  if (mode == "allocations" && count > 2) {
    MakeGarbage();  // unwind tables of the code are made for these samples
    WorkOfMain();
    MakeGarbage();
    KeepBlocks();
    return EndBy(arguments[2]);
  }
  if (mode == "forks") return RunForks(arguments[0]);
  if (mode == "surroundings") return PrintSurroundings();
  if (mode == "busy" && count > 2) return WorkFor(std::strtod(arguments[2], nullptr));
  if (mode == "ask") return WorkWhenTold();
  if (mode == "setuid") return BecomeNobody();
  if (mode == "chroot" && count > 2) return ChangeRoot(arguments[2]);
  if (mode == "signal") return AwaitSignal();
  if (mode == "forever") return WaitForEver();
  if (mode == "exit_in_handler") return ExitInHandler();
  std::fputs("recorded_program: no such mode\n", stderr);
  return 99;
}
