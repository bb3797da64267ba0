// The last step of a path. Compiled in both ways, like the functions above it.
#include <ucontext.h>

#include <cstdint>

#include "path.h"

namespace strobe::testing {

STROBE_BENCH_CODE std::uint64_t STROBE_BENCH_NAME(Leaf)(Path& path, std::size_t depth) {
  ucontext_t context;
  getcontext(&context);
#if defined(__x86_64__)
  const auto& machine = context.uc_mcontext.gregs;
  constexpr std::uint8_t kPlaces[] = {REG_RAX, REG_RDX, REG_RCX, REG_RBX, REG_RSI, REG_RDI,
                                      REG_RBP, REG_RSP, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                      REG_R12, REG_R13, REG_R14, REG_R15};
  const X86_64GeneralRegisters general(machine, kPlaces);
  path.at_leaf({.pc = static_cast<Address>(machine[REG_RIP]),
                .sp = static_cast<Address>(machine[REG_RSP]),
                .fp = static_cast<Address>(machine[REG_RBP]),
                .general = &general});
#else
  const auto& machine = context.uc_mcontext;
  path.at_leaf(
      {.pc = machine.pc, .sp = machine.sp, .fp = machine.regs[29], .lr = machine.regs[30]});
#endif
  return depth;
}

}  // namespace strobe::testing
