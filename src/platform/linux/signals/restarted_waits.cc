#include "restarted_waits.h"

#include <errno.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "arch/system_call.h"
#include "strobe/base/page.h"

namespace strobe::internal {

#if defined(__x86_64__)
namespace {

// Waits that end with EINTR although the handler has SA_RESTART (signal(7)), or do so with a
// time-out. Not those that wait for a signal alone: pause, sigsuspend.
STROBE_SIGNAL_SAFE bool IsWait(int number) {
  switch (number) {
    case SYS_poll:
    case SYS_ppoll:
    case SYS_select:
    case SYS_pselect6:
    case SYS_epoll_wait:
    case SYS_epoll_pwait:
    case SYS_epoll_pwait2:
    case SYS_nanosleep:
    case SYS_clock_nanosleep:
    case SYS_futex:
    case SYS_read:
    case SYS_readv:
    case SYS_recvfrom:
    case SYS_recvmsg:
    case SYS_recvmmsg:
    case SYS_accept:
    case SYS_accept4:
    case SYS_write:
    case SYS_writev:
    case SYS_sendto:
    case SYS_sendmsg:
    case SYS_sendmmsg:
    case SYS_msgrcv:
    case SYS_msgsnd:
    case SYS_semop:
    case SYS_semtimedop:
    case SYS_io_getevents:
    case SYS_io_pgetevents:
    case SYS_io_uring_enter:
    case SYS_rt_sigtimedwait: return true;
    default: return false;
  }
}

}  // namespace

STROBE_SIGNAL_SAFE void RestartWait(ucontext_t& context) {
  auto& registers = context.uc_mcontext.gregs;
  if (registers[REG_RAX] != -EINTR) return;
  // The code before the program counter has just run, and its page is that of the next instruction.
  const auto pc = static_cast<std::uintptr_t>(registers[REG_RIP]);
  const std::size_t bytes = std::min<std::size_t>(pc % kPageBytes, kMaxSystemCallBytes);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): where the program runs
  const auto* const code = reinterpret_cast<const std::uint8_t*>(pc - bytes);
  const int number = SystemCallBefore({code, bytes});
  if (!IsWait(number)) return;
  registers[REG_RAX] = number;
  registers[REG_RIP] -= kSystemCallBytes;
}
#else
STROBE_SIGNAL_SAFE void RestartWait(ucontext_t& /*context*/) {}
#endif

}  // namespace strobe::internal
