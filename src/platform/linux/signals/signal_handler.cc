#include "signal_handler.h"

#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <linux/perf_event.h>
#include <sys/auxv.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <mutex>
#include <string>

#include "absl/strings/str_cat.h"
#include "let_through.h"
#include "restarted_waits.h"
#include "strobe/base/signal_safe.h"
#include "strobe/clock/system_clock.h"
#include "strobe/platform/capture_target.h"
#include "thread_files.h"

// Missing in a program that is linked statically.
#pragma weak dladdr
#pragma weak dlsym

// The linker's: this image's own header.
extern "C" __attribute__((weak, visibility("hidden")))
const ElfW(Ehdr) __ehdr_start;  // NOLINT(bugprone-reserved-identifier)

namespace strobe::internal {
namespace {

// The program's handler before HandleSignal was installed. Written once, under the mutex, before
// HandleSignal can run.
struct PreviousHandler {
  struct sigaction action {};
  std::atomic<bool> is_installed{false};
};
constinit std::array<PreviousHandler, kSignalLimit> previous_handlers{};
constinit BriefLock install_mutex;

using GeneralRegisters = NativeRegisters::GeneralRegisters;
#if defined(__x86_64__)
STROBE_SIGNAL_SAFE GeneralRegisters GeneralRegistersOf(const ucontext_t* context) {
  static constexpr std::array<std::uint8_t, kX86_64GeneralRegisters> kPlaces = {
      REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI, REG_RBP, REG_RSP,
      REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
  return GeneralRegisters(context == nullptr ? nullptr : context->uc_mcontext.gregs,
                          kPlaces.data());
}
STROBE_SIGNAL_SAFE NativeRegisters RegistersOf(const ucontext_t& context,
                                               const GeneralRegisters& general) {
  const auto& registers = context.uc_mcontext.gregs;
  return {.pc = static_cast<Address>(registers[REG_RIP]),
          .sp = static_cast<Address>(registers[REG_RSP]),
          .fp = static_cast<Address>(registers[REG_RBP]),
          .general = &general};
}
#else
STROBE_SIGNAL_SAFE GeneralRegisters GeneralRegistersOf(const ucontext_t* /*context*/) { return {}; }
STROBE_SIGNAL_SAFE NativeRegisters RegistersOf(const ucontext_t& context,
                                               const GeneralRegisters& /*general*/) {
  const auto& machine = context.uc_mcontext;
  return {.pc = machine.pc, .sp = machine.sp, .fp = machine.regs[29], .lr = machine.regs[30]};
}
#endif

// The kernel saves the place of the thread's alternate stack, if any, with the registers.
STROBE_SIGNAL_SAFE bool IsOnAlternateStack(const ucontext_t& context,
                                           const NativeRegisters& registers) {
  return registers.sp - reinterpret_cast<Address>(context.uc_stack.ss_sp) <
         context.uc_stack.ss_size;
}

// Passes a signal that is not the profiler's to the previous handler. If that was the default
// action, the signal is dropped and counted: the default action would need the handler uninstalled
// while signals of the profiler are queued.
STROBE_SIGNAL_SAFE void ChainToPrevious(int signal, siginfo_t* info, void* context) {
  const PreviousHandler& previous = previous_handlers[static_cast<std::size_t>(signal)];
  if ((previous.action.sa_flags & SA_SIGINFO) != 0) {
    if (previous.action.sa_sigaction != nullptr)
      previous.action.sa_sigaction(signal, info, context);
  } else if (previous.action.sa_handler != SIG_DFL && previous.action.sa_handler != SIG_IGN) {
    previous.action.sa_handler(signal);
  }
}

STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE bool Capture(const CaptureTarget& target) {
  if (target.token.arena >= kMaxArenas) return false;
  const CaptureEntry& entry = CaptureEntryOf(target.token.arena);
  const CaptureEntry::Function function = entry.function.load(std::memory_order_acquire);
  return function != nullptr && function(entry.context, target);
}

// At the limit on pending signals, the kernel delivers a queued signal without its sender and its
// payload. So this serves every registration of the thread that awaits a request.
STROBE_SIGNAL_SAFE bool CaptureAwaited(CaptureTarget& target) {
  bool is_ours = false;
  for (const RegistrationLink* link = RegistrationLinks(); link != nullptr; link = link->next) {
    if (!link->is_awaited(*link)) continue;
    target.token = *link->token;
    is_ours |= Capture(target);
  }
  return is_ours;
}

// The registration of the calling thread whose random timer has this file; nullptr if there is
// none, because the timer has been stopped, or the file is the program's.
STROBE_SIGNAL_SAFE RegistrationLink* LinkOfTimer(int file) {
  RegistrationLink* link = RegistrationLinks();
  while (link != nullptr &&
         ThreadFileNumber(link->random_timer.event.load(std::memory_order_acquire)) != file)
    link = link->next;
  return link;
}

// Lets the timer expire once more, unless it has been stopped meanwhile.
STROBE_SIGNAL_SAFE void SetNextExpiry(RandomTimer& timer) {
  const auto gap_ns = static_cast<std::uint64_t>(timer.NextGapNs());
  const int event = timer.event.load(std::memory_order_acquire);
  if (event < 0 || !IsThreadFileEvent(event)) return;
  const int file = ThreadFileNumber(event);
  ioctl(file, PERF_EVENT_IOC_PERIOD, &gap_ns);
  ioctl(file, PERF_EVENT_IOC_REFRESH, 1);
}

// A time that a request carries: microseconds, which wrap. Never 0, which stands for none.
STROBE_SIGNAL_SAFE std::uint32_t RequestTime(std::int64_t time_ns) {
  return static_cast<std::uint32_t>(time_ns / 1000) | 1;
}
STROBE_SIGNAL_SAFE bool IsLate(std::uint32_t sent) {
  if (sent == 0) return false;
  const std::uint32_t waited = RequestTime(SystemClock().MonotonicNs()) - sent;
  return waited > kLateNs / 1000;
}

// What a signal of the profiler's stands for.
struct Cause {
  RandomTimer* random_timer = nullptr;  // that has expired
  bool was_running = false;             // see Platform::Interrupt
};

// Sets the target's token and expiries. False if the signal is not the profiler's.
STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE bool Identify(const siginfo_t* info, CaptureTarget& target,
                                                      Cause& cause) {
  if (info == nullptr) return false;
  if (info->si_code == POLL_HUP) {
    RegistrationLink* const link = LinkOfTimer(info->si_fd);
    if (link == nullptr) return false;
    cause = {.random_timer = &link->random_timer, .was_running = true};
    target.token = *link->token;
    target.token.provider = link->random_timer.provider.load(std::memory_order_relaxed);
    target.timer_expiries = 1;
    return true;
  }
  if (info->si_code != SI_TIMER) return false;
  cause.was_running = info->si_overrun == kRequestOfRunningThread;
  const bool is_request = cause.was_running || info->si_overrun == kRequest;
  target.is_late = cause.was_running && IsLate(static_cast<std::uint32_t>(info->si_timerid));
  target.timer_expiries = is_request ? 0 : 1 + static_cast<std::int64_t>(info->si_overrun);
  return ChannelToken::Unpack(reinterpret_cast<std::uintptr_t>(info->si_value.sival_ptr),
                              target.token);
}

// Calls once each function of other libraries that the handler calls. A loader that binds a
// function at its first call must not do so in the handler.
void BindCalls() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  static_cast<void>(std::chrono::steady_clock::now());
  static_cast<void>(process_vm_readv(getpid(), nullptr, 0, nullptr, 0, 0));
  ioctl(-1, PERF_EVENT_IOC_PERIOD, nullptr);
  syscall(SYS_getpid);
  char bytes[2] = {};
  const volatile std::size_t size = 1;
  std::memcpy(&bytes[0], &bytes[1], size);
  std::memmove(&bytes[0], &bytes[1], size);
  std::memset(bytes, errno, size);
  __asm__ volatile("" : : "r"(bytes) : "memory");  // keeps the compiler from removing the calls
}

// Keeps the image that holds the handler, perhaps a plug-in, in memory until the process ends: the
// system may call the handler until then.
void KeepOwnImage() {
  static constinit std::atomic<bool> is_kept{false};
  // The program itself stays anyway. This check does not call the loader, whose lock a thread may
  // hold that waits for this one.
  if (&__ehdr_start != nullptr &&
      reinterpret_cast<Address>(&__ehdr_start) + __ehdr_start.e_phoff == getauxval(AT_PHDR))
    return;
  if (&dladdr == nullptr || &dlsym == nullptr || is_kept.exchange(true)) return;
  // Looked up by name, because a direct call makes the linker of a static program warn.
  const auto open_library =
      reinterpret_cast<void* (*)(const char*, int)>(dlsym(RTLD_DEFAULT, "dlopen"));
  Dl_info own{};
  if (open_library == nullptr || dladdr(reinterpret_cast<const void*>(&HandleSignal), &own) == 0)
    return;
  // The library is loaded already. The handle is never closed; NODELETE keeps the library anyway.
  static_cast<void>(open_library(own.dli_fname, RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE));
}

}  // namespace

STROBE_SIGNAL_SAFE void HandleSignal(int signal, siginfo_t* info, void* context) {
  const int saved_errno = errno;
  const auto* const interrupted = static_cast<const ucontext_t*>(context);
  const GeneralRegisters general = GeneralRegistersOf(interrupted);
  NativeRegisters registers;
  CaptureTarget target;
  if (interrupted != nullptr) {
    registers = RegistersOf(*interrupted, general);
    target.registers = &registers;
    target.is_on_alternate_stack = IsOnAlternateStack(*interrupted, registers);
  }
  if (Cause cause; Identify(info, target, cause)) {
    if (!Capture(target)) GlobalHandlerCounters().stale.fetch_add(1, std::memory_order_relaxed);
    if (cause.random_timer != nullptr) SetNextExpiry(*cause.random_timer);
    // A thread that blocks all signals expects no wait of its to end by one.
    const bool is_hidden = HasSignal(let_through, signal);
    if ((cause.was_running || is_hidden) && context != nullptr)
      RestartWait(*static_cast<ucontext_t*>(context));
  } else if (context == nullptr || info == nullptr || info->si_code != SI_USER ||
             info->si_pid != 0 || !CaptureAwaited(target)) {
    GlobalHandlerCounters().foreign.fetch_add(1, std::memory_order_relaxed);
    const bool is_given_back = GiveBack(signal, info, context);
    errno = saved_errno;
    if (!is_given_back) ChainToPrevious(signal, info, context);
    return;
  }
  errno = saved_errno;
}

absl::Status InstallSignalHandler(int signal) {
  if (signal < 1 || signal >= kSignalLimit)
    return absl::InvalidArgumentError(absl::StrCat("sampling.signal_number: no signal ", signal));
  // Not under the mutex: a library's constructors may fork, and a fork waits for the mutex.
  KeepOwnImage();
  const std::lock_guard lock(install_mutex);
  PreviousHandler& previous = previous_handlers[static_cast<std::size_t>(signal)];
  if (previous.is_installed.load(std::memory_order_relaxed)) {
    // If the program has replaced this handler, perhaps with one that chains to it, the replacement
    // stays, and Diagnose() reports it.
    return absl::OkStatus();
  }
  BindCalls();
  struct sigaction current {};
  if (sigaction(signal, nullptr, &current) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("sampling.signal_number: signal ", signal, " cannot be handled"));
  }
  // In a child of _Fork the handler may be installed already, and the previous one recorded.
  if (current.sa_sigaction != &HandleSignal) previous.action = current;
  struct sigaction ours {};
  ours.sa_sigaction = &HandleSignal;
  // SA_ONSTACK: a thread with an alternate stack needs it. The mask blocks all signals during the
  // handler, so that nothing nests in a capture.
  ours.sa_flags = SA_SIGINFO | SA_RESTART | SA_ONSTACK;
  sigfillset(&ours.sa_mask);
  if (sigaction(signal, &ours, nullptr) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("sampling.signal_number: signal ", signal, " cannot be handled"));
  }
  previous.is_installed.store(true, std::memory_order_release);
  return absl::OkStatus();
}

bool SendRequest(std::uint64_t process_id, std::uint64_t thread_id, std::uint64_t payload,
                 int signal, bool was_running, bool may_be_late) {
  siginfo_t info{};
  info.si_signo = signal;
  // The signal looks like a timer's, because an exec discards a thread's pending timer signals and
  // no others. Any other signal could kill the new image, which has no handler. No timer has such
  // an overrun; it says that the signal stands for no expiry.
  info.si_code = SI_TIMER;
  info.si_overrun = was_running ? kRequestOfRunningThread : kRequest;
  if (may_be_late) info.si_timerid = static_cast<int>(RequestTime(SystemClock().MonotonicNs()));
  info.si_value.sival_ptr =
      reinterpret_cast<void*>(payload);  // NOLINT(performance-no-int-to-ptr): as above
  return syscall(SYS_rt_tgsigqueueinfo, static_cast<pid_t>(process_id),
                 static_cast<pid_t>(thread_id), signal, &info) == 0;
}

HandlerState SignalHandlerState(int signal) {
  if (signal < 1 || signal >= kSignalLimit) return HandlerState::kNotInstalled;
  if (!previous_handlers[static_cast<std::size_t>(signal)].is_installed.load(
          std::memory_order_acquire))
    return HandlerState::kNotInstalled;
  struct sigaction current {};
  if (sigaction(signal, nullptr, &current) != 0) return HandlerState::kReplaced;
  const bool is_ours =
      (current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == &HandleSignal;
  return is_ours ? HandlerState::kOurs : HandlerState::kReplaced;
}

namespace {

// True if the signal has no handler of the program. If the program has replaced HandleSignal, the
// signal belongs to the program, whatever its handler is now.
bool IsFree(int signal) {
  struct sigaction current {};
  if (sigaction(signal, nullptr, &current) != 0) return false;
  const bool is_ours =
      (current.sa_flags & SA_SIGINFO) != 0 && current.sa_sigaction == &HandleSignal;
  if (is_ours || SignalHandlerState(signal) == HandlerState::kReplaced) return is_ours;
  return current.sa_handler == SIG_DFL || current.sa_handler == SIG_IGN;
}

}  // namespace

int ChooseSignal() {
  // A thread can have one pending standard signal of each number, so a signal that the program
  // sends by the same number may be lost. So the number must be unused. SIGURG comes first, because
  // it does no harm to a new image after an exec; Linux never sends SIGSTKFLT, and hardly ever
  // SIGPWR. Real-time signals come last: they queue without bound in a thread that blocks them.
  for (const int signal : {SIGURG, SIGSTKFLT, SIGPWR}) {
    if (IsFree(signal)) return signal;
  }
  for (int signal = SIGRTMAX; signal >= SIGRTMIN; --signal) {
    if (IsFree(signal)) return signal;
  }
  // The program handles all of them, as a Go program does. SIGSTKFLT is never sent by the system;
  // if the program sends it, ChainToPrevious passes it on.
  return SIGSTKFLT;
}

BriefLock& InstallMutex() { return install_mutex; }

sigset_t InstalledSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal = 1; signal < kSignalLimit; ++signal) {
    if (previous_handlers[static_cast<std::size_t>(signal)].is_installed.load(
            std::memory_order_acquire))
      sigaddset(&signals, signal);
  }
  return signals;
}

}  // namespace strobe::internal
