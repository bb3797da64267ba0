// CfiStep: from one frame to its caller by call frame information, in the tables that UnwindModules
// holds. Exact in code without frame pointers, too.
#pragma once

#include <cstddef>
#include <cstdint>

#include "strobe/arch/registers.h"
#include "strobe/base/signal_safe.h"
#include "strobe/core/stack.h"
#include "strobe/unwind/frame_step.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/unwind_table.h"

namespace strobe {

// Models FrameStep, for both architectures on every host. Without modules all code is unknown to
// it. `modules` outlives the step, and may be another process's.
class CfiStep {
 public:
  CfiStep() = default;
  explicit CfiStep(const UnwindModules* modules) noexcept : modules_(modules) {}

  template <class Registers, StackMemory M>
  STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE StepResult Step(FrameState<Registers>& state,
                                                          const M& memory) const noexcept {
    if (modules_ == nullptr) return StepResult::kUnknown;
    const UnwindRule rule = modules_->cache().Find(state.code_address());
    if (rule.is_frame()) [[likely]]
      return StepPlain(state, memory, rule);
    // A copy, so that the registers of the walk stay in the machine's.
    FrameState<Registers> copy = state;
    const StepResult result = StepRarely(*modules_, copy, memory);
    state = copy;
    return result;
  }

 private:
  // Frames of one walk at which rbx may be recovered: each costs a walk up to there. Lazy binding
  // nests by signals at most.
  static constexpr std::uint8_t kMaxRecoveries = 4;
  // Signals' frames of one walk that may lead to another stack, so that none leads to itself for
  // ever.
  static constexpr std::uint8_t kMaxStackSwitches = 8;

  // The same where the cache has no plain rule.
  template <class Registers, StackMemory M>
  STROBE_SIGNAL_SAFE STROBE_NOINLINE static StepResult StepRarely(const UnwindModules& modules,
                                                                  FrameState<Registers>& state,
                                                                  const M& memory) noexcept {
    const UnwindRule rule = modules.FindRule(state.code_address());
    if (rule.is_frame()) return StepPlain(state, memory, rule);
    const StepResult result = StepByTable(modules, state, memory, nullptr);
    Address rbx = 0;
    return result == StepResult::kLost && RecoverRbx(modules, state, memory, rbx)
               ? StepByTable(modules, state, memory, &rbx)
               : result;
  }

  // The same by the code's table. `rbx` is its value in this frame, or nullptr where it is not
  // known.
  template <class Registers, StackMemory M>
  STROBE_SIGNAL_SAFE STROBE_NOINLINE static StepResult StepByTable(const UnwindModules& modules,
                                                                   FrameState<Registers>& state,
                                                                   const M& memory,
                                                                   const Address* rbx) noexcept {
    const Address pc = state.code_address();
    const UnwindModules::Entry* const entry = modules.Find(pc);
    if (entry == nullptr)
      return modules.is_complete() ? StepResult::kUnknown : StepResult::kPending;
    if (entry->table == nullptr) return StepResult::kPending;
    const UnwindRule rule = entry->table->Find(static_cast<std::uint32_t>(pc - entry->start));
    if (rule.is_frame()) return StepPlain(state, memory, rule);
    state.rule = rule;
    if (rule.kind() == UnwindRule::Kind::kStop) return StepResult::kEnd;
    return StepSpecial(state, memory, entry->table->Special(rule), pc, rbx);
  }

  // By one that is_frame().
  template <class Registers, StackMemory M>
  STROBE_SIGNAL_SAFE static STROBE_ALWAYS_INLINE StepResult StepPlain(FrameState<Registers>& state,
                                                                      const M& memory,
                                                                      UnwindRule rule) noexcept {
    const Registers& registers = state.registers;
    state.rule = rule;
    const Address cfa = (rule.is_from_fp() ? registers.fp : registers.sp) + rule.cfa_bytes();
    const Address ra_words = RaWords(registers, rule);
    if (ra_words == 0) {
      // Only a leaf that has called no function yet: its lr holds the way back, and it may have
      // pushed nothing.
      Address fp = registers.fp;
      if (!state.is_exact || cfa < registers.sp) return StepResult::kBroken;
      if (rule.fp_words() != 0 && !memory.ReadWord(cfa - Address{rule.fp_words()} * 8, fp))
        return StepResult::kBroken;
      return internal::Return(state, LinkRegister(registers), cfa, fp, false);
    }
    if (cfa <= registers.sp) return StepResult::kBroken;  // callers lie above
    // Which functions save fp no CPU can foresee, so nothing branches on it: where it was not
    // saved, the return address is read twice.
    const Address fp_words = rule.fp_slot_words();
    const Address saves_fp = fp_words != ra_words ? ~Address{0} : 0;
    Address ra = 0;
    Address fp = 0;
    if (!memory.ReadWord(cfa - ra_words * 8, ra) || !memory.ReadWord(cfa - fp_words * 8, fp))
      return StepResult::kBroken;
    return internal::Return(state, ra, cfa, (fp & saves_fp) | (registers.fp & ~saves_fp), false);
  }

  // A call on x86-64 pushes the return address, and nothing later moves it.
  static Address RaWords(const X86_64Registers& /*registers*/, UnwindRule /*rule*/) { return 1; }
  static Address RaWords(const Aarch64Registers& /*registers*/, UnwindRule rule) {
    return rule.ra_words();
  }
  static Address LinkRegister(const X86_64Registers& /*registers*/) { return 0; }
  static Address LinkRegister(const Aarch64Registers& registers) { return registers.lr; }
  static void SetLinkRegister(X86_64Registers& /*registers*/, Address /*lr*/) {}
  static void SetLinkRegister(Aarch64Registers& registers, Address lr) { registers.lr = lr; }

  // The value of rbx in the frame of `state`: walks there once more, with an eye on where it is
  // saved.
  template <StackMemory M>
  STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE static bool RecoverRbx(const UnwindModules& modules,
                                                                 FrameState<X86_64Registers>& state,
                                                                 const M& memory,
                                                                 Address& rbx) noexcept {
    const X86_64Registers* const innermost = state.innermost;
    if (innermost == nullptr || innermost->general == nullptr || state.recoveries == kMaxRecoveries)
      return false;
    ++state.recoveries;
    FrameState<X86_64Registers> walk{.registers = *innermost, .innermost = innermost};
    rbx = (*innermost->general)[kX86_64Rbx];
    for (std::size_t frames = 0; frames < kMaxFramesLimit; ++frames) {
      if (walk.registers.sp == state.registers.sp && walk.registers.pc == state.registers.pc &&
          walk.is_exact == state.is_exact)
        return true;
      const SavedRegister row = modules.FindRbx(walk.code_address());
      const Address sp = walk.registers.sp;
      if (StepByTable(modules, walk, memory, &rbx) != StepResult::kCaller) return false;
      if (row.where == SavedRegister::kUnknown) return false;
      const Address base = row.where == SavedRegister::kFromCfa ? walk.registers.sp : sp;
      if (row.where != SavedRegister::kUnchanged &&
          !memory.ReadWord(base + static_cast<Address>(std::int64_t{row.distance}), rbx))
        return false;
    }
    return false;
  }
  template <StackMemory M>
  static bool RecoverRbx(const UnwindModules& /*modules*/, FrameState<Aarch64Registers>& /*state*/,
                         const M& /*memory*/, Address& /*rbx*/) noexcept {
    return false;
  }

  // The value of a register that a walk does not keep; false where it is not known.
  static bool OtherValue(const FrameState<X86_64Registers>& state, unsigned number,
                         const Address* rbx, Address& value) noexcept {
    const X86_64Registers* innermost = state.innermost;
    if (number == kX86_64Rbx && rbx != nullptr) {
      value = *rbx;
      return true;
    }
    if (innermost == nullptr || innermost->general == nullptr || number >= kX86_64GeneralRegisters)
      return false;
    if (state.is_exact && state.registers.sp == innermost->sp &&
        state.registers.pc == innermost->pc) {
      value = (*innermost->general)[number];
      return true;
    }
    return false;
  }
  static bool OtherValue(const FrameState<Aarch64Registers>& /*state*/, unsigned /*number*/,
                         const Address* /*rbx*/, Address& /*value*/) noexcept {
    return false;
  }

  // The value that an offset counts from; false where it is lost.
  template <class Registers>
  static bool BaseValue(const FrameState<Registers>& state, SpecialRule::Base base, unsigned other,
                        const Address* rbx, Address cfa, Address& value) noexcept {
    switch (base) {
      case SpecialRule::Base::kSp: value = state.registers.sp; return true;
      case SpecialRule::Base::kFp: value = state.registers.fp; return true;
      case SpecialRule::Base::kCfa: value = cfa; return true;
      case SpecialRule::Base::kOther: return OtherValue(state, other, rbx, value);
    }
    return false;
  }

  template <class Registers, StackMemory M>
  static StepResult FindCfa(const FrameState<Registers>& state, const M& memory,
                            const SpecialRule& rule, Address pc, const Address* rbx,
                            Address& cfa) noexcept {
    Address base = 0;
    switch (rule.cfa) {
      case SpecialRule::Cfa::kUnknown: return StepResult::kUnknown;
      case SpecialRule::Cfa::kPlt:
        cfa = state.registers.sp + 8 + ((pc & 15) >= rule.plt_threshold ? 8 : 0);
        return StepResult::kCaller;
      case SpecialRule::Cfa::kOffset:
      case SpecialRule::Cfa::kMemory: break;
    }
    if (!BaseValue(state, rule.cfa_base, rule.cfa_other, rbx, 0, base)) return StepResult::kLost;
    cfa = base + static_cast<Address>(std::int64_t{rule.cfa_offset});
    if (rule.cfa == SpecialRule::Cfa::kMemory && !memory.ReadWord(cfa, cfa))
      return StepResult::kBroken;
    return StepResult::kCaller;
  }

  template <class Registers, StackMemory M>
  static StepResult FindValue(const FrameState<Registers>& state, const M& memory,
                              const SpecialRule::Location& location, const Address* rbx,
                              Address cfa, Address& value) noexcept {
    if (location.where == SpecialRule::Where::kUnchanged) return StepResult::kCaller;
    if (location.where == SpecialRule::Where::kUndefined) {
      value = 0;
      return StepResult::kCaller;
    }
    if (!BaseValue(state, location.base, location.other, rbx, cfa, value)) return StepResult::kLost;
    if (location.where == SpecialRule::Where::kRegister) return StepResult::kCaller;
    return memory.ReadWord(value + static_cast<Address>(std::int64_t{location.offset}), value)
               ? StepResult::kCaller
               : StepResult::kBroken;
  }

  template <class Registers, StackMemory M>
  STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE static StepResult StepSpecial(
      FrameState<Registers>& state, const M& memory, const SpecialRule& rule, Address pc,
      const Address* rbx) noexcept {
    Address cfa = 0;
    Address ra = LinkRegister(state.registers);
    Address fp = state.registers.fp;
    StepResult result = FindCfa(state, memory, rule, pc, rbx, cfa);
    if (result == StepResult::kCaller) result = FindValue(state, memory, rule.ra, rbx, cfa, ra);
    if (result == StepResult::kCaller) result = FindValue(state, memory, rule.fp, rbx, cfa, fp);
    // A caller's lr has been overwritten by its call.
    if (result == StepResult::kCaller && rule.ra.where == SpecialRule::Where::kUnchanged &&
        !state.is_exact)
      return StepResult::kBroken;
    Address lr = LinkRegister(state.registers);
    if (result == StepResult::kCaller && rule.is_signal_frame)
      result = FindValue(state, memory, rule.lr, rbx, cfa, lr);
    if (result != StepResult::kCaller) return result;
    if (rule.is_signal_frame) {
      // What was interrupted may lie on another stack, in either direction.
      if (cfa <= state.registers.sp && ++state.stack_switches > kMaxStackSwitches)
        return StepResult::kBroken;
    } else if (cfa < state.registers.sp || (cfa == state.registers.sp && !state.is_exact)) {
      return StepResult::kBroken;
    }
    result = internal::Return(state, ra, cfa, fp, rule.is_signal_frame);
    if (result == StepResult::kCaller && rule.is_signal_frame) SetLinkRegister(state.registers, lr);
    return result;
  }

  const UnwindModules* modules_ = nullptr;
};
static_assert(FrameStep<CfiStep>);

}  // namespace strobe
