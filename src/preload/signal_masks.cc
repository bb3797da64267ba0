#include "signal_masks.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstring>

#include "../platform/linux/signals/let_through.h"
#include "../platform/linux/signals/signal_handler.h"

namespace strobe::internal {
namespace {

// The thread that let_through tells of; 0 before TakeMask. The child of a vfork has its parent's
// memory but a mask of its own.
[[gnu::tls_model("initial-exec")]] constinit thread_local long mask_owner = 0;
// The thread waits for the profiler's signal itself.
[[gnu::tls_model("initial-exec")]] constinit thread_local bool awaits_signal = false;

long ThreadId() { return syscall(SYS_gettid); }

static_assert(sizeof(sigset_t) >= sizeof(std::uint64_t));
std::uint64_t BitsOf(const sigset_t& set) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, &set, sizeof(bits));
  return bits;
}
void SetBits(sigset_t& set, std::uint64_t bits) { std::memcpy(&set, &bits, sizeof(bits)); }

std::uint64_t MaskOfKernel() {
  std::uint64_t mask = 0;
  syscall(SYS_rt_sigprocmask, SIG_BLOCK, nullptr, &mask, sizeof(mask));
  return mask;
}

// Calls change(signal) for each signal of the set.
template <class Change>
void ForEach(std::uint64_t signals, const Change& change) {
  for (int signal = 1; signal < kSignalLimit; ++signal) {
    if (HasSignal(signals, signal)) change(signal);
  }
}

// Those whose handler the program has not replaced: such a signal is the program's.
std::uint64_t ProfilersSignals() {
  std::uint64_t signals = BitsOf(InstalledSignals());
  ForEach(signals, [&](int signal) {
    if (SignalHandlerState(signal) != HandlerState::kOurs) signals &= ~BitOf(signal);
  });
  return signals;
}

// What of `hidden` stays hidden, or is hidden from now on.
std::uint64_t HiddenAfter(int how, std::uint64_t set, std::uint64_t hidden,
                          std::uint64_t profilers) {
  const std::uint64_t ours = awaits_signal ? 0 : profilers & set;
  switch (how) {
    case SIG_BLOCK: return hidden | ours;
    case SIG_UNBLOCK: return hidden & ~set;
    default: return ours;
  }
}

}  // namespace

void TakeMask() {
  mask_owner = ThreadId();
  if (!awaits_signal) ForEach(MaskOfKernel() & ProfilersSignals(), &LetThrough);
}

std::uint64_t HiddenMask() { return let_through; }
void InheritMask(std::uint64_t hidden) { let_through = hidden; }

int SetMaskOfProgram(SetMask& next, int how, const sigset_t* set, sigset_t* before) {
  const bool may_hide = set != nullptr && mask_owner == ThreadId();
  const std::uint64_t profilers = may_hide ? ProfilersSignals() : 0;
  if (may_hide) ForEach(let_through & ~profilers, &CeaseToLetThrough);
  const std::uint64_t hidden = let_through;
  int result = 0;
  if (!may_hide) {
    result = next(how, set, before);
  } else {
    const std::uint64_t after = HiddenAfter(how, BitsOf(*set), hidden, profilers);
    sigset_t shown = *set;
    if (how != SIG_UNBLOCK) SetBits(shown, BitsOf(*set) & ~after);
    let_through = how == SIG_UNBLOCK ? after : hidden | after;
    std::atomic_signal_fence(std::memory_order_seq_cst);
    result = next(how, &shown, before);
    std::atomic_signal_fence(std::memory_order_seq_cst);
    let_through = result == 0 ? after : hidden;
  }
  if (result == 0 && before != nullptr) SetBits(*before, BitsOf(*before) | hidden);
  return result;
}

void GiveUpSignal(int signal) {
  if (mask_owner == ThreadId() && SignalHandlerState(signal) != HandlerState::kOurs)
    CeaseToLetThrough(signal);
}

bool AwaitsProfilersSignal(const sigset_t& awaited) {
  return !awaits_signal && mask_owner == ThreadId() &&
         (BitsOf(awaited) & ProfilersSignals() & (let_through | MaskOfKernel())) != 0;
}

// A signal of the profiler's that is pending comes now, while nothing waits for it.
void BlockAwaited() {
  awaits_signal = true;
  ForEach((let_through | MaskOfKernel()) & ProfilersSignals(), [](int signal) {
    LetThrough(signal);
    CeaseToLetThrough(signal);
  });
}

}  // namespace strobe::internal
