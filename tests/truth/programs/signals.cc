// Signals on the thread's own stack and on an alternate one, nested, by raise and by faults between
// any two instructions, returned from and left by siglongjmp.
#include <ucontext.h>

#include <csetjmp>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <initializer_list>

namespace {

volatile std::uint64_t sink = 1;
sigjmp_buf escape;

[[gnu::noinline]] std::uint64_t Work(std::uint64_t a) {
  const std::uint64_t b = a * 3 + sink;
  return b ^ (b >> 7);
}

void Plain(int /*signal*/) { sink = Work(sink); }
void Nesting(int /*signal*/) {
  sink = Work(sink);
  raise(SIGUSR2);
  sink = Work(sink);
}
void Leaving(int /*signal*/) {
  sink = Work(sink);
  siglongjmp(escape, 1);
}
// Passes over the two bytes of ud2.
void Skip(int /*signal*/, siginfo_t* /*info*/, void* context) {
  sink = Work(sink);
  static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_RIP] += 2;
}

void Handle(int signal, void (*handler)(int), int flags) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = flags;
  sigaction(signal, &action, nullptr);
}

// Interrupted at its entry, with registers saved and not, and where its frame is gone already.
[[gnu::noinline]] std::uint64_t Faulting(std::uint64_t a) {
  asm volatile("ud2");
  const std::uint64_t b = Work(a);
  asm volatile("ud2");
  const std::uint64_t c = Work(a + b);
  asm volatile("ud2");
  return a + b * c;
}

[[gnu::noinline]] std::uint64_t Escaping(int depth) {
  if (depth > 0) {
    const std::uint64_t below = Escaping(depth - 1);
    return below + sink;
  }
  raise(SIGTERM);
  return 0;
}

}  // namespace

int main() {
  constexpr std::size_t kStackBytes = 65536;
  static char memory[kStackBytes];
  const stack_t stack{.ss_sp = memory, .ss_flags = 0, .ss_size = kStackBytes};
  sigaltstack(&stack, nullptr);
  for (const int flags : {0, SA_ONSTACK}) {
    Handle(SIGUSR1, &Nesting, flags);
    Handle(SIGUSR2, &Plain, SA_ONSTACK - flags);
    Handle(SIGTERM, &Leaving, flags);
    struct sigaction faults {};
    faults.sa_sigaction = &Skip;
    faults.sa_flags = SA_SIGINFO | flags;
    sigaction(SIGILL, &faults, nullptr);
    static int round;  // not in a register, which siglongjmp may restore
    for (round = 0; round < 20; ++round) {
      raise(SIGUSR1);
      sink = sink + Faulting(sink);
      if (sigsetjmp(escape, 1) == 0) sink = sink + Escaping(round % 6);
    }
  }
  return 0;
}
