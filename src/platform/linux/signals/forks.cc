// Between a fork and an exec, nothing here allocates or waits for a lock whose owner may not exist
// in the child, but for what FollowForks calls. No wait is unlimited if the lock's owner may wait
// for the forking thread. All state is static and needs no construction.
#include "forks.h"

#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstddef>
#include <new>

#include "loader_mutex.h"
#include "signal_handler.h"
#include "strobe/platform/capture_target.h"

namespace strobe::internal {
namespace {

// How long a fork waits for a thread of the profiler to leave the loader, or to install a handler.
// If it takes longer, that thread waits for the forking one. Example: it waits for the loader's own
// lock, whose owner needs memory, and the fork handlers of the allocator have locked the heap.
constexpr std::int64_t kMaxForkWaitNs = 100'000'000;
constexpr std::int64_t kPauseNs = 20'000;

// The state of this process. It lies on a page that the kernel wipes in every child, also in a
// child of _Fork or of a plain clone, for which no fork handler runs.
enum ProcessState : std::uint32_t {
  kWiped = 0,  // not used yet, or a child for which no fork handler ran
  kForked,     // a child after the fork handler
  kSettling,
  kSettled,
};
using ProcessWord = std::atomic<std::uint32_t>;
constinit std::atomic<ProcessWord*> process_word{nullptr};
// For a kernel that does not wipe: then only the fork handler detects a child.
constinit ProcessWord unwiped_word{kWiped};
constinit std::atomic<std::uint64_t> fork_count{0};

constinit BriefLock loader_lock;

// Of FollowForks; nullptr without.
using ForkHook = void (*)();
constinit std::atomic<ForkHook> hook_before{nullptr};
constinit std::atomic<ForkHook> hook_in_child{nullptr};

void Call(const std::atomic<ForkHook>& hook) {
  if (const ForkHook function = hook.load(std::memory_order_acquire)) function();
}

// One thread forks at a time. The forking thread owns the variables that follow.
constinit BriefLock fork_lock;
constinit std::atomic<pthread_t> forking_thread{};
constinit int nested_forks = 0;  // of the same thread, by a fork handler or a signal handler
constinit bool has_loader_lock = false;
constinit bool has_install_lock = false;
sigset_t mask_before;

// In a child: the threads that held these locks do not exist there.
void OpenLocks() {
  LoaderMutex().unlock();
  InstallMutex().unlock();
  nested_forks = 0;
  forking_thread.store({}, std::memory_order_relaxed);
  fork_lock.unlock();
}

void EndFork() {
  const sigset_t before = mask_before;
  if (has_install_lock) InstallMutex().unlock();
  if (has_loader_lock) LoaderMutex().unlock();
  forking_thread.store({}, std::memory_order_relaxed);
  fork_lock.unlock();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
}

// Kernels before 4.19 restart a fork when a signal arrives, so a fork that takes longer than a
// period would never end. So the profiler's signals are blocked during a fork. No expiry is lost:
// expiries add up as overruns.
void BeforeFork() {
  if (ProcessWord& word = *process_word.load(std::memory_order_acquire);
      word.load(std::memory_order_acquire) == kWiped) {
    OpenLocks();
    word.store(kForked, std::memory_order_release);
  }
  if (forking_thread.load(std::memory_order_relaxed) == pthread_self()) {
    ++nested_forks;
    return;
  }
  fork_lock.lock();
  forking_thread.store(pthread_self(), std::memory_order_relaxed);
  Call(hook_before);
  has_loader_lock = LoaderMutex().LockFor(kMaxForkWaitNs);
  has_install_lock = InstallMutex().LockFor(kMaxForkWaitNs);
  const sigset_t ours = InstalledSignals();
  pthread_sigmask(SIG_BLOCK, &ours, &mask_before);
}

// True if the call belongs to a fork inside another one.
bool EndNestedFork() {
  if (nested_forks == 0) return false;
  --nested_forks;
  return true;
}

void AfterForkInParent() {
  if (!EndNestedFork()) EndFork();
}

void AfterForkInChild() {
  // The parent's registrations mean nothing here. The first use of a Profiler resets the rest: see
  // Settle.
  RegistrationLinks() = nullptr;
  process_word.load(std::memory_order_acquire)->store(kForked, std::memory_order_release);
  if (EndNestedFork()) return;
  // A lock that BeforeFork could not take has no holder in the child, so it is released as well.
  has_loader_lock = true;
  has_install_lock = true;
  EndFork();
  Call(hook_in_child);
}

ProcessWord& OwnWord() {
  if (ProcessWord* word = process_word.load(std::memory_order_acquire)) return *word;
  const auto bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  void* page = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const bool is_wiped = page != MAP_FAILED && madvise(page, bytes, MADV_WIPEONFORK) == 0;
  ProcessWord* own = is_wiped ? new (page) ProcessWord(kWiped) : &unwiped_word;
  ProcessWord* word = nullptr;
  const bool is_own = process_word.compare_exchange_strong(word, own, std::memory_order_acq_rel);
  if (page != MAP_FAILED && !(is_own && is_wiped)) munmap(page, bytes);
  return is_own ? *own : *word;
}

// Removes the state of the parent's threads, which do not exist in the child.
void ForgetParent() {
  DoubtLoader();
  RegistrationLinks() = nullptr;
  for (std::size_t arena = 0; arena < kMaxArenas; ++arena)
    CaptureEntryOf(arena).function.store(nullptr, std::memory_order_release);
}

// The first call in a process. If a fork interrupts it, the child starts it again.
void Settle() {
  ProcessWord& word = OwnWord();
  std::uint32_t state = word.load(std::memory_order_acquire);
  while (state == kSettling || state == kSettled ||
         !word.compare_exchange_strong(state, kSettling, std::memory_order_acq_rel)) {
    if (state == kSettled) return;
    BriefLock::Pause();
    state = word.load(std::memory_order_acquire);
  }
  if (state == kWiped) OpenLocks();
  if (fork_count.load(std::memory_order_relaxed) == 0) {
    pthread_atfork(&BeforeFork, &AfterForkInParent, &AfterForkInChild);
  } else {
    ForgetParent();
  }
  fork_count.fetch_add(1, std::memory_order_relaxed);
  word.store(kSettled, std::memory_order_release);
}

}  // namespace

bool BriefLock::LockFor(std::int64_t time_ns) {
  for (std::int64_t waited_ns = 0; !try_lock(); waited_ns += kPauseNs) {
    if (waited_ns >= time_ns) return false;
    Pause();
  }
  return true;
}

void BriefLock::Pause() {
  const timespec time{.tv_sec = 0, .tv_nsec = kPauseNs};
  nanosleep(&time, nullptr);
}

BriefLock& LoaderMutex() { return loader_lock; }

void FollowForks(ForkHook before, ForkHook in_child) {
  static_cast<void>(ForkCount());  // asks the system for the handlers
  hook_before.store(before, std::memory_order_release);
  hook_in_child.store(in_child, std::memory_order_release);
}

std::uint64_t ForkCount() {
  const ProcessWord* word = process_word.load(std::memory_order_acquire);
  if (word == nullptr || word->load(std::memory_order_acquire) != kSettled) Settle();
  return fork_count.load(std::memory_order_relaxed);
}

}  // namespace strobe::internal
