// LinuxPlatform: alternate stacks of threads whose own ones are too small for the handler.
#include <signal.h>
#include <sys/auxv.h>
#include <sys/mman.h>

#include <cstddef>

#include "strobe/base/page.h"
#include "strobe/platform/linux/linux_platform.h"

#ifndef AT_MINSIGSTKSZ
#define AT_MINSIGSTKSZ 51  // since glibc 2.34
#endif

namespace strobe {
namespace {

using internal::kPageBytes;

// What the handlers of the program and ours may use beside the kernel's frame. Only the pages that
// they touch take memory.
constexpr std::size_t kHandlerBytes = 64 * 1024;

// The calling thread's, which our registrations have made.
struct SignalStack {
  std::byte* memory = nullptr;
  std::size_t bytes = 0;  // with a page below that cannot be written
  int holders = 0;

  [[nodiscard]] bool IsInUse() const {
    stack_t now{};
    return memory != nullptr && sigaltstack(nullptr, &now) == 0 &&
           now.ss_sp == memory + kPageBytes && (now.ss_flags & SS_DISABLE) == 0;
  }
};
constinit thread_local SignalStack signal_stack;

// The kernel's frame has the processor's registers: up to 11 KiB.
std::size_t SignalStackBytes() {
  return internal::RoundUpToPages(getauxval(AT_MINSIGSTKSZ) + kHandlerBytes) + kPageBytes;
}

bool MakeSignalStack() {
  const std::size_t bytes = SignalStackBytes();
  void* const memory =
      mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
  if (memory == MAP_FAILED) return false;
  auto* const low = static_cast<std::byte*>(memory);
  stack_t stack{};
  stack.ss_sp = low + kPageBytes;
  stack.ss_size = bytes - kPageBytes;
  if (mprotect(low, kPageBytes, PROT_NONE) != 0 || sigaltstack(&stack, nullptr) != 0) {
    munmap(memory, bytes);
    return false;
  }
  signal_stack = {.memory = low, .bytes = bytes};
  return true;
}

}  // namespace

bool LinuxPlatform::HoldSignalStack() {
  stack_t now{};
  if (sigaltstack(nullptr, &now) != 0) return false;
  const bool is_free = (now.ss_flags & SS_DISABLE) != 0;
  if (!is_free && !signal_stack.IsInUse()) return false;  // the program's own
  if (is_free && !MakeSignalStack()) return false;
  ++signal_stack.holders;
  return true;
}

void LinuxPlatform::ReleaseSignalStack() {
  if (--signal_stack.holders > 0) return;
  // Code that has put another one in its place may put ours back: then it stays.
  stack_t none{};
  none.ss_flags = SS_DISABLE;
  if (signal_stack.IsInUse() && sigaltstack(&none, nullptr) == 0)
    munmap(signal_stack.memory, signal_stack.bytes);
  signal_stack = {};
}

}  // namespace strobe
