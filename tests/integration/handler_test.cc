// What the handler does not do: allocate, and call the system.
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <vector>

#include "forked_child.h"
#include "gtest/gtest.h"
#include "support/until_seen.h"

// A sanitizer brings the allocator. See strobe/base/sanitizers.h.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define STROBE_TEST_IS_SANITIZED
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define STROBE_TEST_IS_SANITIZED
#endif
#endif

#if !defined(STROBE_TEST_IS_SANITIZED)
// The trap: every allocation of this program comes by here. glibc keeps its own under these names.
extern "C" {
void* __libc_malloc(std::size_t bytes);                     // NOLINT(bugprone-reserved-identifier)
void* __libc_calloc(std::size_t count, std::size_t bytes);  // NOLINT(bugprone-reserved-identifier)
void* __libc_realloc(void* memory, std::size_t bytes);      // NOLINT(bugprone-reserved-identifier)
void __libc_free(void* memory);                             // NOLINT(bugprone-reserved-identifier)
}
#endif

namespace strobe {
namespace {

using testing::KeepingProfiler;
using testing::RunRegistered;
using testing::WalksOfThisThread;
using testing::WorkUntil;

// On a thread that watches itself, all signals are blocked inside of a handler of ours and nowhere
// else.
constinit thread_local bool is_watched = false;
constinit std::atomic<int> trapped{0};

[[maybe_unused]] void Trap() {  // a sanitizer has the allocator, and it is not called then
  if (!is_watched) return;
  sigset_t mask;
  sigemptyset(&mask);
  pthread_sigmask(SIG_SETMASK, nullptr, &mask);
  if (sigismember(&mask, SIGUSR2) == 1) trapped.fetch_add(1);
}

void* volatile kept_from_the_optimizer = nullptr;

void AllocateInHandler(int /*signal*/) {
  kept_from_the_optimizer = std::malloc(16);  // NOLINT(bugprone-signal-handler): that is the point
  std::free(kept_from_the_optimizer);
}

TEST(Handler, AllocatesNothing) {
  if (testing::kIsSanitized) GTEST_SKIP() << "the sanitizer has the allocator";
  KeepingProfiler profiler({.sampling = {.cpu_frequency_hz = 1000, .wall_frequency_hz = 100}});
  ASSERT_TRUE(profiler.Start().ok());
  RunRegistered(profiler, "watched", [] {
    is_watched = true;
    trapped = 0;
    // Allocating all the while, so that the handler comes in the middle of it as well.
    for (int round = 0; round < 20; ++round) {
      const int before = WalksOfThisThread();
      WorkUntil([before] { return WalksOfThisThread() != before; },
                [] {
                  for (std::size_t bytes = 1; bytes < 5000; bytes += 100) {
                    kept_from_the_optimizer = std::malloc(bytes);
                    std::free(kept_from_the_optimizer);
                  }
                });
    }
    EXPECT_EQ(trapped.load(), 0);
    // The trap works.
    struct sigaction action {};
    action.sa_handler = &AllocateInHandler;
    sigfillset(&action.sa_mask);
    ASSERT_EQ(sigaction(SIGUSR1, &action, nullptr), 0);
    raise(SIGUSR1);
    EXPECT_EQ(trapped.load(), 2);
    is_watched = false;
  });
  ASSERT_TRUE(profiler.Stop().ok());
}

// The traced child: works on a registered thread until it has been sampled often enough.
constexpr int kTracedSamples = 50;
[[noreturn]] void RunTraced() {
  if (ptrace(PTRACE_TRACEME, 0, nullptr, nullptr) != 0) _exit(77);
  raise(SIGSTOP);
  // Each stop is a wait: the thread would soon have a random timer, which its handler sets again.
  KeepingProfiler profiler(
      {.sampling = {.cpu_frequency_hz = 1000, .trigger = SampleTrigger::kTimers}});
  STROBE_CHILD_CHECK(profiler.Start().ok());
  RunRegistered(profiler, "traced", [] {
    const int wanted = WalksOfThisThread() + kTracedSamples;
    STROBE_CHILD_CHECK(WorkUntil([wanted] { return WalksOfThisThread() >= wanted; },
                                 [] {
                                   for (int i = 0; i < 100'000; ++i)
                                     asm volatile("" : : : "memory");
                                 }));
  });
  _exit(0);
}

TEST(Handler, MakesNoSystemCallOnItsFastPath) {
  if (testing::kIsSanitized) GTEST_SKIP() << "a sanitizer's own handler stands before ours";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) RunTraced();
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
    GTEST_SKIP() << "the system does not let us trace";
  ASSERT_TRUE(WIFSTOPPED(status));
  ASSERT_EQ(ptrace(PTRACE_SETOPTIONS, child, nullptr, PTRACE_O_TRACESYSGOOD | PTRACE_O_EXITKILL),
            0);
  int handled = 0;
  bool is_in_handler = false;
  std::map<std::uint64_t, int> calls;
  int to_deliver = 0;
  while (true) {
    ASSERT_EQ(ptrace(PTRACE_SYSCALL, child, nullptr, to_deliver), 0);
    ASSERT_EQ(waitpid(child, &status, 0), child);
    if (!WIFSTOPPED(status)) break;
    to_deliver = 0;
    if (WSTOPSIG(status) != (SIGTRAP | 0x80)) {
      to_deliver = WSTOPSIG(status);
      if (to_deliver == SIGURG) {
        is_in_handler = true;
        ++handled;
      }
      continue;
    }
    __ptrace_syscall_info info{};
    ASSERT_GT(ptrace(PTRACE_GET_SYSCALL_INFO, child, sizeof(info), &info), 0);
    if (!is_in_handler || info.op != PTRACE_SYSCALL_INFO_ENTRY) continue;
    if (info.entry.nr == SYS_rt_sigreturn) {
      is_in_handler = false;
    } else {
      ++calls[info.entry.nr];
    }
  }
  ASSERT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 0);
  EXPECT_GE(handled, kTracedSamples);
  // One call in sixteen looks at the clock, twice; where the kernel has no clock that can be read
  // without it, these are system calls.
  EXPECT_LE(calls[SYS_clock_gettime], 2 * (handled / 16 + 1));
  calls.erase(SYS_clock_gettime);
  for (const auto& [number, count] : calls)
    ADD_FAILURE() << count << " times system call " << number << " in " << handled << " samples";
}

// What a seccomp filter must allow where threads are sampled: README.md says the same.
constexpr std::array kHandlersCalls = {SYS_rt_sigreturn, SYS_clock_gettime, SYS_getpid,
                                       SYS_process_vm_readv};

// The calling thread may make these calls from now on, and end the process; any other kills it.
void AllowHandlersCallsOnly() {
  std::vector<sock_filter> filter = {{BPF_LD | BPF_W | BPF_ABS, 0, 0, offsetof(seccomp_data, nr)}};
  const auto allow = [&](long call) {
    filter.push_back({BPF_JMP | BPF_JEQ | BPF_K, 0, 1, static_cast<std::uint32_t>(call)});
    filter.push_back({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_ALLOW});
  };
  for (const long call : kHandlersCalls) allow(call);
  allow(SYS_exit_group);
  filter.push_back({BPF_RET | BPF_K, 0, 0, SECCOMP_RET_KILL_PROCESS});
  const sock_fprog program{.len = static_cast<unsigned short>(filter.size()),
                           .filter = filter.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    _exit(2);
}

// On a coroutine's stack, which is what the handler asks the system for; by both clocks.
[[noreturn]] void WorkUnderAFilter() {
  static KeepingProfiler profiler(
      {.sampling = {.cpu_frequency_hz = 1000, .wall_frequency_hz = 100}});
  static ucontext_t coroutine;
  static std::array<std::byte, 256 * 1024> stack;
  const auto registration = profiler.RegisterThread("filtered");
  if (!profiler.Start().ok() || getcontext(&coroutine) != 0) _exit(3);
  coroutine.uc_stack.ss_sp = stack.data();
  coroutine.uc_stack.ss_size = stack.size();
  makecontext(
      &coroutine,
      [] {
        AllowHandlersCallsOnly();
        const int wanted = WalksOfThisThread() + 50;
        const bool is_sampled = WorkUntil([wanted] { return WalksOfThisThread() >= wanted; },
                                          [] { testing::BurnCpu(1'000'000); });
        _exit(is_sampled ? 0 : 5);
      },
      0);
  setcontext(&coroutine);
  _exit(4);
}

TEST(Handler, MakesNoOtherSystemCallsThanAFilterMustAllow) {
  if (testing::kIsSanitized) GTEST_SKIP() << "a sanitizer makes calls of its own";
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  EXPECT_EXIT(WorkUnderAFilter(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace strobe

#if !defined(STROBE_TEST_IS_SANITIZED)
extern "C" {
void* malloc(std::size_t bytes) {
  strobe::Trap();
  return __libc_malloc(bytes);
}
void* calloc(std::size_t count, std::size_t bytes) {
  strobe::Trap();
  return __libc_calloc(count, bytes);
}
void* realloc(void* memory, std::size_t bytes) {
  strobe::Trap();
  return __libc_realloc(memory, bytes);
}
void free(void* memory) {
  strobe::Trap();
  __libc_free(memory);
}
}
#endif
