// CfiUnwinder: exact stacks of code without frame pointers, by the tables that UnwindModules holds.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "strobe/arch/registers.h"
#include "strobe/base/signal_safe.h"
#include "strobe/core/stack.h"
#include "strobe/unwind/frame_step.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/unwind_table.h"
#include "strobe/unwind/unwinder.h"

namespace strobe {

// Models Unwinder and FrameStepper, for both architectures on every host. Without modules all code is unknown to it. `modules` outlives the
// unwinder, and may be another process's.
class CfiUnwinder {
 public:
  CfiUnwinder() = default;
  explicit CfiUnwinder(const UnwindModules* modules) noexcept : modules_(modules) {}

  template <class Registers, StackMemory M>
  STROBE_SIGNAL_SAFE WalkResult Unwind(const Registers& registers, const M& memory, std::span<Address> output) const noexcept {
    return internal::WalkFrames(registers, output, [&](FrameState<Registers>& state) noexcept { return Step(state, memory); });
  }

  template <class Registers, StackMemory M>
  STROBE_SIGNAL_SAFE StepResult Step(FrameState<Registers>& state, const M& memory) const noexcept {
    const Address pc = state.code_address();
    const UnwindModules::Entry* entry = state.module;
    if (entry == nullptr || pc - entry->start >= entry->limit - entry->start) {
      entry = modules_ == nullptr ? nullptr : modules_->Find(pc);
      if (entry == nullptr) return StepResult::kUnknown;
      state.module = entry;
    }
    const UnwindRule rule = entry->table->Find(static_cast<std::uint32_t>(pc - entry->start));
    const Registers& registers = state.registers;
    if (rule.kind() == UnwindRule::Kind::kSpecial) return StepSpecial(state, memory, entry->table->Special(rule), pc);
    if (rule.kind() == UnwindRule::Kind::kStop) return StepResult::kEnd;
    const Address base = rule.kind() == UnwindRule::Kind::kFromSp ? registers.sp : registers.fp;
    const Address cfa = base + Address{rule.cfa_words()} * 8;
    // Callers lie above; only a leaf that has pushed nothing yet shares its caller's sp, and only where lr holds the way back.
    if (cfa < registers.sp || (cfa == registers.sp && !(state.is_exact && rule.ra_words() == 0))) return StepResult::kBroken;
    Address ra = LinkRegister(registers);
    Address fp = registers.fp;
    if (rule.ra_words() != 0 && !memory.ReadWord(cfa - Address{rule.ra_words()} * 8, ra)) return StepResult::kBroken;
    if (rule.ra_words() == 0 && !state.is_exact) return StepResult::kBroken;  // a caller's lr has been overwritten by its call
    if (rule.fp_words() != 0 && !memory.ReadWord(cfa - Address{rule.fp_words()} * 8, fp)) return StepResult::kBroken;
    return internal::Return(state, ra, cfa, fp, false);
  }

 private:
  static Address LinkRegister(const X86_64Registers& /*registers*/) { return 0; }
  static Address LinkRegister(const Aarch64Registers& registers) { return registers.lr; }

  // The value that an offset counts from; false for a register that the walk has not recovered.
  template <class Registers>
  static bool BaseValue(const Registers& registers, SpecialRule::Base base, Address cfa, Address& value) noexcept {
    switch (base) {
      case SpecialRule::Base::kSp: value = registers.sp; return true;
      case SpecialRule::Base::kFp: value = registers.fp; return true;
      case SpecialRule::Base::kCfa: value = cfa; return true;
      case SpecialRule::Base::kOther: return false;
    }
    return false;
  }

  template <class Registers, StackMemory M>
  static StepResult FindCfa(const FrameState<Registers>& state, const M& memory, const SpecialRule& rule, Address pc,
                            Address& cfa) noexcept {
    Address base = 0;
    switch (rule.cfa) {
      case SpecialRule::Cfa::kUnknown: return StepResult::kUnknown;
      case SpecialRule::Cfa::kPlt: cfa = state.registers.sp + 8 + ((pc & 15) >= rule.plt_threshold ? 8 : 0); return StepResult::kCaller;
      case SpecialRule::Cfa::kOffset:
      case SpecialRule::Cfa::kMemory: break;
    }
    if (!BaseValue(state.registers, rule.cfa_base, 0, base)) return StepResult::kUnknown;
    cfa = base + static_cast<Address>(std::int64_t{rule.cfa_offset});
    if (rule.cfa == SpecialRule::Cfa::kMemory && !memory.ReadWord(cfa, cfa)) return StepResult::kBroken;
    return StepResult::kCaller;
  }

  template <class Registers, StackMemory M>
  static StepResult FindValue(const FrameState<Registers>& state, const M& memory, const SpecialRule::Location& location, Address cfa,
                              Address unchanged, Address& value) noexcept {
    value = unchanged;
    if (location.where == SpecialRule::Where::kUnchanged) return StepResult::kCaller;
    if (location.where == SpecialRule::Where::kUndefined) {
      value = 0;
      return StepResult::kCaller;
    }
    Address base = 0;
    if (!BaseValue(state.registers, location.base, cfa, base)) return StepResult::kUnknown;
    value = base;
    if (location.where == SpecialRule::Where::kRegister) return StepResult::kCaller;
    return memory.ReadWord(base + static_cast<Address>(std::int64_t{location.offset}), value) ? StepResult::kCaller : StepResult::kBroken;
  }

  template <class Registers, StackMemory M>
  STROBE_SIGNAL_SAFE STROBE_NOINLINE static StepResult StepSpecial(FrameState<Registers>& state, const M& memory, const SpecialRule& rule,
                                                                   Address pc) noexcept {
    Address cfa = 0;
    Address ra = 0;
    Address fp = 0;
    StepResult result = FindCfa(state, memory, rule, pc, cfa);
    if (result != StepResult::kCaller) return result;
    // A signal's frame may lie on another stack than what it interrupted, in either direction.
    if (!rule.is_signal_frame && (cfa < state.registers.sp || (cfa == state.registers.sp && !state.is_exact))) return StepResult::kBroken;
    result = FindValue(state, memory, rule.ra, cfa, LinkRegister(state.registers), ra);
    if (result != StepResult::kCaller) return result;
    result = FindValue(state, memory, rule.fp, cfa, state.registers.fp, fp);
    if (result != StepResult::kCaller) return result;
    return internal::Return(state, ra, cfa, fp, rule.is_signal_frame);
  }

  const UnwindModules* modules_ = nullptr;
};
static_assert(Unwinder<CfiUnwinder>);
static_assert(FrameStepper<CfiUnwinder>);

}  // namespace strobe
