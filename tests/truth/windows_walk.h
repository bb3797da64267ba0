// What the tools that compare walks on Windows share: places on a stack, all images' functions, and
// the walk by tables made of .pdata.
#pragma once

#include <windows.h>
// After it.
#include <algorithm>
#include <array>
#include <cstddef>

#include "strobe/core/module_map.h"
#include "strobe/unwind/cfi_step.h"

namespace strobe::testing {

inline constexpr std::size_t kMaxPlaces = 512;

// What a frame's registers are.
struct Place {
  Address pc = 0;
  Address sp = 0;
  Address fp = 0;
};
inline bool operator==(const Place& a, const Place& b) {
  return a.pc == b.pc && a.sp == b.sp && a.fp == b.fp;
}
inline bool operator!=(const Place& a, const Place& b) { return !(a == b); }

struct Places {
  std::size_t count = 0;
  std::array<Place, kMaxPlaces> places;
};

// Of a thread's stack.
struct Bounds {
  Address low = 0;
  Address high = 0;
  [[nodiscard]] bool Hold(Address sp) const { return sp >= low && sp < high; }
};

inline Bounds CurrentBounds() {
  ULONG_PTR low = 0;
  ULONG_PTR high = 0;
  GetCurrentThreadStackLimits(&low, &high);
  return {low, high};
}

// All images' functions, so that nothing asks the loader while a thread is stopped that may hold
// its lock.
class FunctionTables {
 public:
  // Of a function that uses the stack, and its image.
  struct Function {
    RUNTIME_FUNCTION* entry = nullptr;
    Address base = 0;
  };

  explicit FunctionTables(const ModuleMap& map) : map_(map) {}

  // No entry: a leaf function, or no code.
  [[nodiscard]] Function Find(Address pc) const {
    const auto index = map_.Find(pc);
    if (!index) return {};
    const Module& module = map_.modules()[*index];
    auto* const first = reinterpret_cast<RUNTIME_FUNCTION*>(module.pdata_address);
    auto* const last = first + module.pdata_bytes / sizeof(RUNTIME_FUNCTION);
    const auto offset = static_cast<DWORD>(pc - module.load_bias);
    auto* const after =
        std::upper_bound(first, last, offset,
                         [](DWORD at, const RUNTIME_FUNCTION& f) { return at < f.BeginAddress; });
    if (after == first || offset >= after[-1].EndAddress) return {};
    return {after - 1, module.load_bias};
  }
  [[nodiscard]] bool Knows(Address pc) const { return map_.Find(pc).has_value(); }
  [[nodiscard]] const ModuleMap& map() const { return map_; }

 private:
  const ModuleMap& map_;
};

// Where in their functions instructions lie.
struct CodeCounts {
  std::size_t prologues = 0;
  std::size_t epilogues = 0;
  std::size_t leaves = 0;

  void Add(const FunctionTables& tables, Address pc) {
    const FunctionTables::Function function = tables.Find(pc);
    if (function.entry == nullptr) {
      ++leaves;
    } else {
      const auto* const info = reinterpret_cast<const unsigned char*>(
          function.base + (function.entry->UnwindData & ~1u));
      prologues += pc - function.base - function.entry->BeginAddress < info[1] ? 1 : 0;
    }
    const auto* code = reinterpret_cast<const unsigned char*>(pc);
    if ((*code & 0xF0) == 0x40) ++code;
    constexpr unsigned char kReturn = 0xC3;
    epilogues += *code == kReturn || (*code & 0xF8) == 0x58 ? 1 : 0;  // pop
  }
};

// In the order of X86_64GeneralRegisters.
inline std::array<Address, kX86_64GeneralRegisters> GeneralRegisters(const CONTEXT& context) {
  return {context.Rax, context.Rdx, context.Rcx, context.Rbx, context.Rsi, context.Rdi,
          context.Rbp, context.Rsp, context.R8,  context.R9,  context.R10, context.R11,
          context.R12, context.R13, context.R14, context.R15};
}

// Frame by frame, by `step`; says how the walk ended. Allocates nothing.
template <FrameStep S>
StepResult WalkBy(const S& step, const X86_64Registers& registers, const CopiedStackMemory& memory,
                  Places& output) {
  FrameState<X86_64Registers> state{.registers = registers, .innermost = &registers};
  output.count = 0;
  StepResult result = StepResult::kCaller;
  while (result == StepResult::kCaller && output.count < kMaxPlaces) {
    output.places[output.count++] = {state.registers.pc, state.registers.sp, state.registers.fp};
    result = step.Step(state, memory);
  }
  return result;
}

}  // namespace strobe::testing
