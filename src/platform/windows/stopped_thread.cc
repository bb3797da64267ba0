#include "stopped_thread.h"

#include <windows.h>
// These need windows.h before them.
#include <algorithm>
#include <cstring>
#include <mutex>
#include <unordered_map>

#include "exit_lock.h"
#include "strobe/platform/capture_target.h"
#include "strobe/platform/windows/windows_platform.h"

namespace strobe::internal {
namespace {

class ThreadTable {
 public:
  void Add(std::uint64_t id, std::shared_ptr<KnownThread> thread) {
    const std::lock_guard lock(mutex_);
    threads_[id] = std::move(thread);
  }
  void Remove(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    threads_.erase(id);
  }
  std::shared_ptr<KnownThread> Find(std::uint64_t id) {
    const std::lock_guard lock(mutex_);
    const auto found = threads_.find(id);
    return found == threads_.end() ? nullptr : found->second;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<std::uint64_t, std::shared_ptr<KnownThread>>
      threads_;  // an insertion may throw
};
ThreadTable& GlobalThreads() {
  static auto* const table = new ThreadTable;  // never destroyed: threads end after main, too
  return *table;
}

// Removes the ending thread from the table. Not at the process's end, because a killed thread may
// have locked the table.
void WINAPI ForgetThread(void* thread_id) {
  if (!IsProcessEnding()) GlobalThreads().Remove(reinterpret_cast<std::uintptr_t>(thread_id));
}

// Makes the system call ForgetThread at the calling thread's end. A thread_local object would not
// work: mingw-w64 frees its memory before it destroys it (GCC's bug 58142).
bool ForgetAtEnd(std::uint64_t thread_id) {
  static const DWORD slot = FlsAlloc(&ForgetThread);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): a number in a pointer's place
  return slot != FLS_OUT_OF_INDEXES &&
         FlsSetValue(slot, reinterpret_cast<void*>(static_cast<std::uintptr_t>(thread_id))) != 0;
}

// The number of the current stop: odd from its begin to its end. The stopping thread and the
// watchdog both try to end a stop; the one that succeeds resumes the thread.
class Watchdog {
 public:
  void Begin(HANDLE thread) {
    thread_.store(thread, std::memory_order_relaxed);
    begin_ms_.store(GetTickCount64(), std::memory_order_relaxed);
    stop_.store(++last_stop_, std::memory_order_release);
  }
  // False if the watchdog was faster, and has resumed the thread.
  bool End() {
    std::uint64_t stop = last_stop_++;
    if (stop_.compare_exchange_strong(stop, last_stop_, std::memory_order_acq_rel)) return true;
    while (is_resuming_.load(std::memory_order_acquire)) SwitchToThread();
    return false;
  }

  bool Start() {
    const std::lock_guard lock(mutex_);
    if (is_started_) return true;
    WindowsPlatform::OwnThread thread =
        WindowsPlatform::RunOnOwnThread("strobe-watchdog", [this] { Run(); });
    is_started_ = thread.IsRunning();
    thread.Detach();
    return is_started_;
  }

 private:
  [[noreturn]] void Run() {
    constexpr DWORD kCheckMs = 100;
    while (true) {
      Sleep(kCheckMs);
      std::uint64_t stop = stop_.load(std::memory_order_acquire);
      if (stop % 2 == 0 ||
          GetTickCount64() - begin_ms_.load(std::memory_order_relaxed) < kMaxStopMs)
        continue;
      const HANDLE thread = thread_.load(std::memory_order_relaxed);
      // A stopping thread that was too late waits until is_resuming_ is false, so that the handle
      // stays valid.
      is_resuming_.store(true, std::memory_order_release);
      if (stop_.compare_exchange_strong(stop, stop + 1, std::memory_order_acq_rel)) {
        ResumeThread(thread);
        GlobalStopCounters().resumed.fetch_add(1, std::memory_order_relaxed);
      }
      is_resuming_.store(false, std::memory_order_release);
    }
  }

  std::mutex mutex_;
  bool is_started_ = false;
  std::uint64_t last_stop_ = 0;  // used by the stopping thread only
  std::atomic<std::uint64_t> stop_{0};
  std::atomic<std::uint64_t> begin_ms_{0};
  std::atomic<HANDLE> thread_{nullptr};
  std::atomic<bool> is_resuming_{false};
};
Watchdog& GlobalWatchdog() {
  static auto* const watchdog = new Watchdog;
  return *watchdog;
}

const void* CurrentBlock() {
#if defined(__GNUC__)
  // NtCurrentTeb() is the same, but g++ 12 warns that its address is out of bounds.
  const void* block = nullptr;
  __asm__("movq %%gs:0x30, %0" : "=r"(block));
  return block;
#else
  return NtCurrentTeb();
#endif
}

// Copies the stack of a stopped thread. False if the stack pointer is not in the stack that the
// thread's block names.
bool CopyStopped(const CONTEXT& context, const NT_TIB& block, StackCopy& copy) {
  const auto low = reinterpret_cast<Address>(block.StackLimit);
  const auto high = reinterpret_cast<Address>(block.StackBase);
  if (context.Rsp < low || context.Rsp >= high || (context.Rsp & 7) != 0) return false;
  copy.byte_count = std::min<std::size_t>(high - context.Rsp, StackCopy::kMaxBytes);
  // NOLINTNEXTLINE(performance-no-int-to-ptr)
  std::memcpy(copy.bytes.data(), reinterpret_cast<const void*>(context.Rsp), copy.byte_count);
  return true;
}

void SetRegisters(const CONTEXT& context, StackCopy& copy) {
  copy.base = context.Rsp;
  copy.words = {context.Rax, context.Rdx, context.Rcx, context.Rbx, context.Rsi, context.Rdi,
                context.Rbp, context.Rsp, context.R8,  context.R9,  context.R10, context.R11,
                context.R12, context.R13, context.R14, context.R15};
  copy.registers = {
      .pc = context.Rip, .sp = context.Rsp, .fp = context.Rbp, .general = &copy.general};
}

}  // namespace

StopCounters& GlobalStopCounters() {
  static constinit StopCounters counters;
  return counters;
}

std::shared_ptr<KnownThread> KnownThread::Current() {
  ExitLock::Prepare();
  const std::uint64_t id = GetCurrentThreadId();
  std::shared_ptr<KnownThread> thread = GlobalThreads().Find(id);
  // A terminated thread leaves its entry behind, and its id may be this thread's now.
  DWORD code = 0;
  if (thread != nullptr && GetExitCodeThread(thread->handle(), &code) != 0 && code == STILL_ACTIVE)
    return thread;
  HANDLE handle = nullptr;
  constexpr DWORD kRights = THREAD_SUSPEND_RESUME | THREAD_GET_CONTEXT | THREAD_QUERY_INFORMATION;
  if (DuplicateHandle(GetCurrentProcess(), GetCurrentThread(), GetCurrentProcess(), &handle,
                      kRights, FALSE, 0) == 0)
    return nullptr;
  thread = std::make_shared<KnownThread>(handle, CurrentBlock());
  if (!ForgetAtEnd(id)) return nullptr;
  GlobalThreads().Add(id, thread);
  return thread;
}

std::shared_ptr<KnownThread> KnownThread::Find(std::uint64_t thread_id) {
  return GlobalThreads().Find(thread_id);
}

KnownThread::~KnownThread() {
  if (stalls.load(std::memory_order_relaxed) >= kMaxStalls) {
    GlobalHandlerCounters().threads_given_up.fetch_sub(1, std::memory_order_relaxed);
  }
  CloseHandle(handle_);
}

bool CopyStack(KnownThread& thread, StackCopy& copy, void (*while_stopped)()) {
  if (thread.stalls.load(std::memory_order_relaxed) >= kMaxStalls) return false;
  Watchdog& watchdog = GlobalWatchdog();
  CONTEXT context{};
  context.ContextFlags = CONTEXT_FULL;
  const ExitLock exit_lock;
  if (!exit_lock.is_held()) return false;
  if (SuspendThread(thread.handle()) == static_cast<DWORD>(-1)) return false;
  GlobalStopCounters().stopped.fetch_add(1, std::memory_order_relaxed);
  // Not before SuspendThread: the watchdog must not resume a thread that is not stopped yet.
  watchdog.Begin(thread.handle());
  // SuspendThread does not wait. The thread is stopped once GetThreadContext has returned.
  bool is_copied = GetThreadContext(thread.handle(), &context) != 0 &&
                   CopyStopped(context, *static_cast<const NT_TIB*>(thread.block()), copy);
  if (while_stopped != nullptr) while_stopped();
  if (watchdog.End()) {
    ResumeThread(thread.handle());
  } else {
    is_copied = false;
    const int stalls = thread.stalls.fetch_add(1, std::memory_order_relaxed) + 1;
    if (stalls == kMaxStalls)
      GlobalHandlerCounters().threads_given_up.fetch_add(1, std::memory_order_relaxed);
  }
  if (is_copied) SetRegisters(context, copy);
  return is_copied;
}

bool StartWatchdog() { return GlobalWatchdog().Start(); }

}  // namespace strobe::internal
