#include "let_through.h"

#include <sys/syscall.h>
#include <ucontext.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

namespace strobe::internal {
namespace {

void SetBlocked(int signal, bool is_blocked) {
  sigset_t signals;
  sigemptyset(&signals);
  sigaddset(&signals, signal);
  pthread_sigmask(is_blocked ? SIG_BLOCK : SIG_UNBLOCK, &signals, nullptr);
}

}  // namespace

constinit thread_local std::uint64_t let_through = 0;

// A signal may come as soon as it is not blocked.
void LetThrough(int signal) {
  let_through |= BitOf(signal);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  SetBlocked(signal, false);
}

void CeaseToLetThrough(int signal) {
  if (!HasSignal(let_through, signal)) return;
  SetBlocked(signal, true);
  std::atomic_signal_fence(std::memory_order_seq_cst);
  let_through &= ~BitOf(signal);
}

STROBE_SIGNAL_SAFE bool GiveBack(int signal, const siginfo_t* info, void* context) {
  if (!HasSignal(let_through, signal) || info == nullptr || context == nullptr) return false;
  let_through &= ~BitOf(signal);
  // The mask that the thread has once the handler returns. Until then it blocks all signals.
  sigset_t& mask = static_cast<ucontext_t*>(context)->uc_sigmask;
  std::uint64_t blocked = 0;
  std::memcpy(&blocked, &mask, sizeof(blocked));
  blocked |= BitOf(signal);
  std::memcpy(&mask, &blocked, sizeof(blocked));
  // kill and sigqueue send to a process, and so does the kernel. The system lets only the first
  // thread of a process send what looks like these: else the signal keeps its sender alone.
  siginfo_t same = *info;
  const long process = syscall(SYS_getpid);
  if (info->si_code == SI_TKILL) {
    syscall(SYS_rt_tgsigqueueinfo, process, syscall(SYS_gettid), signal, &same);
  } else if (syscall(SYS_rt_sigqueueinfo, process, signal, &same) != 0) {
    same.si_code = SI_QUEUE;
    syscall(SYS_rt_sigqueueinfo, process, signal, &same);
  }
  return true;
}

}  // namespace strobe::internal
