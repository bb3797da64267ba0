// CfiStep: from one frame to its caller by call frame information, in the tables that UnwindModules
// holds. Exact in code without frame pointers, too.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>

#include "strobe/arch/dwarf_registers.h"
#include "strobe/arch/registers.h"
#include "strobe/base/signal_safe.h"
#include "strobe/core/stack.h"
#include "strobe/unwind/dwarf_expression.h"
#include "strobe/unwind/frame_step.h"
#include "strobe/unwind/stack_memory.h"
#include "strobe/unwind/unwind_table.h"

namespace strobe {

// Models FrameStep, for both architectures on every host. Without modules, all code is unknown.
// `modules` outlives the step, and may be another process's.
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
    // A copy, so that the compiler keeps the walk's registers in the CPU's.
    FrameState<Registers> copy = state;
    const StepResult result = StepRarely(*modules_, copy, memory);
    state = copy;
    return result;
  }

 private:
  // Frames of one walk at which the special register may be recovered: each costs a walk up to
  // there. Lazy binding nests by signals at most.
  static constexpr std::uint8_t kMaxRecoveries = 4;
  // Signals' frames of one walk that may lead to another stack. The limit ends a walk whose signal
  // frame leads back to itself.
  static constexpr std::uint8_t kMaxStackSwitches = 8;

  // The same if the cache has no plain rule.
  template <class Registers, StackMemory M>
  [[gnu::noinline]] STROBE_SIGNAL_SAFE static StepResult StepRarely(const UnwindModules& modules,
                                                                    FrameState<Registers>& state,
                                                                    const M& memory) noexcept {
    const UnwindRule rule = modules.FindRule(state.code_address());
    if (rule.is_frame()) return StepPlain(state, memory, rule);
    const StepResult result = StepByTable(modules, state, memory, nullptr);
    RecoveredRegisters recovered;
    return result == StepResult::kLost && Recover(modules, state, memory, recovered)
               ? StepByTable(modules, state, memory, &recovered)
               : result;
  }

  // What another walk from the innermost frame found for a frame that lies above.
  struct RecoveredRegisters {
    Address special = 0;      // the special register's value
    bool has_special = true;  // it is known
    bool is_called = true;    // calls alone lead from the frame to the innermost: no signal
  };

  // The same by the code's table. `recovered` is what is known of other registers in this frame, or
  // nullptr.
  template <class Registers, StackMemory M>
  [[gnu::noinline]] STROBE_SIGNAL_SAFE static StepResult StepByTable(
      const UnwindModules& modules, FrameState<Registers>& state, const M& memory,
      const RecoveredRegisters* recovered) noexcept {
    const Address pc = state.code_address();
    if (pc < kLowestCode && state.is_exact) return StepFromNowhere(modules, state, memory);
    const UnwindModules::Entry* const entry = modules.Find(pc);
    if (entry == nullptr)
      return modules.is_complete() ? StepResult::kUnknown : StepResult::kPending;
    if (entry->table == nullptr) return StepResult::kPending;
    const UnwindRule rule = entry->table->Find(static_cast<std::uint32_t>(pc - entry->start));
    if (rule.is_frame()) return StepPlain(state, memory, rule);
    state.rule = rule;
    if (rule.kind() == UnwindRule::Kind::kStop) return StepResult::kEnd;
    return StepSpecial(state, memory, entry->table->Special(rule), recovered);
  }

  // From where no code is: a call through a null pointer, or by one to a member of nothing. The
  // call has done no more than leave its return address.
  template <class Registers, StackMemory M>
  STROBE_SIGNAL_SAFE static StepResult StepFromNowhere(const UnwindModules& modules,
                                                       FrameState<Registers>& state,
                                                       const M& memory) noexcept {
    constexpr auto kWords = static_cast<std::uint32_t>(Registers::ReturnAddressWords(0));
    const UnwindRule rule = UnwindRule::Frame(UnwindRule::Kind::kFromSp, kWords, kWords, 0);
    const StepResult result = StepPlain(state, memory, rule);
    return result == StepResult::kCaller && modules.Find(state.code_address()) == nullptr
               ? StepResult::kBroken
               : result;
  }

  // The same by a rule that is_frame().
  template <class Registers, StackMemory M>
  STROBE_SIGNAL_SAFE static STROBE_ALWAYS_INLINE StepResult StepPlain(FrameState<Registers>& state,
                                                                      const M& memory,
                                                                      UnwindRule rule) noexcept {
    const Registers& registers = state.registers;
    state.rule = rule;
    const Address cfa = (rule.is_from_fp() ? registers.fp : registers.sp) + rule.cfa_bytes();
    const Address ra_words = Registers::ReturnAddressWords(rule.ra_words());
    if (ra_words == 0) {
      // Only a leaf that has called no function yet: its return address is in lr, and it may have
      // pushed nothing.
      Address fp = registers.fp;
      if (!state.is_exact || cfa < registers.sp) return StepResult::kBroken;
      if (rule.fp_words() != 0 && !memory.ReadWord(cfa - Address{rule.fp_words()} * 8, fp))
        return StepResult::kBroken;
      return internal::Return(state, registers.link_register(), cfa, fp, false);
    }
    if (cfa <= registers.sp) return StepResult::kBroken;  // callers lie above
    // No CPU can predict which functions save fp, so this does not branch on it: if fp was not
    // saved, the return address is read twice.
    const Address fp_words = rule.fp_slot_words();
    const Address saves_fp = fp_words != ra_words ? ~Address{0} : 0;
    Address ra = 0;
    Address fp = 0;
    if (!memory.ReadWord(cfa - ra_words * 8, ra) || !memory.ReadWord(cfa - fp_words * 8, fp))
      return StepResult::kBroken;
    return internal::Return(state, ra, cfa, (fp & saves_fp) | (registers.fp & ~saves_fp), false);
  }

  // Walks to the frame of `state` once more, and follows where functions save the special register,
  // and whether the frame was called.
  template <class Registers, StackMemory M>
  STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE static bool Recover(
      const UnwindModules& modules, FrameState<Registers>& state, const M& memory,
      RecoveredRegisters& recovered) noexcept {
    const Registers* const innermost = state.innermost;
    if (innermost == nullptr || !innermost->has_general_registers() ||
        state.recoveries == kMaxRecoveries)
      return false;
    ++state.recoveries;
    FrameState<Registers> walk{.registers = *innermost, .innermost = innermost};
    recovered.special = innermost->general_register(Registers::kSpecialRegister);
    for (std::size_t frames = 0; frames < kMaxFramesLimit; ++frames) {
      if (walk.registers.sp == state.registers.sp && walk.registers.pc == state.registers.pc &&
          walk.is_exact == state.is_exact)
        return true;
      const SavedRegister row = modules.FindSpecialRegister(walk.code_address());
      const Address sp = walk.registers.sp;
      if (StepByTable(modules, walk, memory, &recovered) != StepResult::kCaller) return false;
      recovered.is_called &= !walk.is_exact;
      const Address base = row.where == SavedRegister::kFromCfa ? walk.registers.sp : sp;
      recovered.has_special &=
          row.where == SavedRegister::kUnchanged ||
          (row.where != SavedRegister::kUnknown &&
           memory.ReadWord(base + static_cast<Address>(std::int64_t{row.distance}),
                           recovered.special));
    }
    return false;
  }

  // The value of a register that a walk does not keep; false if it is not known.
  template <class Registers>
  static bool OtherValue(const FrameState<Registers>& state, unsigned number,
                         const RecoveredRegisters* recovered, Address& value) noexcept {
    if (number == Registers::kSpecialRegister && recovered != nullptr && recovered->has_special) {
      value = recovered->special;
      return true;
    }
    return state.innermost != nullptr && state.is_exact &&
           state.registers.sp == state.innermost->sp && state.registers.pc == state.innermost->pc &&
           InnermostValue(state, number, value);
  }

  // What it is in the innermost frame.
  template <class Registers>
  static bool InnermostValue(const FrameState<Registers>& state, unsigned number,
                             Address& value) noexcept {
    const Registers* const innermost = state.innermost;
    if (innermost == nullptr || !innermost->has_general_registers() ||
        number >= Registers::kGeneralRegisters)
      return false;
    value = innermost->general_register(number);
    return true;
  }

  // The value that an offset counts from; false if it is lost.
  template <class Registers>
  static bool BaseValue(const FrameState<Registers>& state, SpecialRule::Base base, unsigned other,
                        const RecoveredRegisters* recovered, Address cfa, Address& value) noexcept {
    switch (base) {
      case SpecialRule::Base::kSp: value = state.registers.sp; return true;
      case SpecialRule::Base::kFp: value = state.registers.fp; return true;
      case SpecialRule::Base::kCfa: value = cfa; return true;
      case SpecialRule::Base::kOther: return OtherValue(state, other, recovered, value);
      case SpecialRule::Base::kKept:
        return recovered != nullptr && recovered->is_called
                   ? InnermostValue(state, other, value)
                   : OtherValue(state, other, recovered, value);
    }
    return false;
  }

  // What an expression asks for, in the frame of `state`.
  template <class Registers, StackMemory M>
  struct ExpressionMachine {
    const FrameState<Registers>& state;
    const M& memory;
    const RecoveredRegisters* recovered;

    STROBE_SIGNAL_SAFE bool Register(unsigned number, Address& value) const noexcept {
      constexpr DwarfRegisters kRegisters = DwarfRegistersOf(ArchitectureOf<Registers>());
      if (number == kRegisters.sp) {
        value = state.registers.sp;
      } else if (number == kRegisters.fp) {
        value = state.registers.fp;
      } else if (number == kRegisters.pc) {
        value = state.registers.pc;
      } else {
        return OtherValue(state, number, recovered, value);
      }
      return true;
    }
    STROBE_SIGNAL_SAFE bool Word(Address address, Address& value) const noexcept {
      return memory.ReadWord(address, value);
    }
  };

  template <class Registers, StackMemory M>
  [[gnu::noinline]] STROBE_SIGNAL_SAFE static StepResult EvaluateCfa(
      const FrameState<Registers>& state, const M& memory, const SpecialRule& rule,
      const RecoveredRegisters* recovered, Address& cfa) noexcept {
    const ExpressionMachine<Registers, M> machine{state, memory, recovered};
    switch (internal::ExpressionEvaluator(rule.expression.view(), machine).Run(cfa)) {
      case internal::ExpressionEnd::kValue: return StepResult::kCaller;
      case internal::ExpressionEnd::kNoMemory: return StepResult::kBroken;
      case internal::ExpressionEnd::kNoRegister:
      case internal::ExpressionEnd::kMalformed: break;
    }
    return StepResult::kLost;
  }

  template <class Registers, StackMemory M>
  static StepResult FindCfa(const FrameState<Registers>& state, const M& memory,
                            const SpecialRule& rule, const RecoveredRegisters* recovered,
                            Address& cfa) noexcept {
    Address base = 0;
    switch (rule.cfa) {
      case SpecialRule::Cfa::kUnknown: return StepResult::kUnknown;
      case SpecialRule::Cfa::kLost: return StepResult::kLost;
      case SpecialRule::Cfa::kExpression: return EvaluateCfa(state, memory, rule, recovered, cfa);
      case SpecialRule::Cfa::kOffset:
      case SpecialRule::Cfa::kMemory: break;
    }
    if (!BaseValue(state, rule.cfa_base, rule.cfa_other, recovered, 0, base))
      return StepResult::kLost;
    cfa = base + static_cast<Address>(std::int64_t{rule.cfa_offset});
    if (rule.cfa == SpecialRule::Cfa::kMemory && !memory.ReadWord(cfa, cfa))
      return StepResult::kBroken;
    return StepResult::kCaller;
  }

  template <class Registers, StackMemory M>
  static StepResult FindValue(const FrameState<Registers>& state, const M& memory,
                              const SpecialRule::Location& location,
                              const RecoveredRegisters* recovered, Address cfa,
                              Address& value) noexcept {
    if (location.where == SpecialRule::Where::kUnchanged) return StepResult::kCaller;
    if (location.where == SpecialRule::Where::kUndefined) {
      value = 0;
      return StepResult::kCaller;
    }
    if (!BaseValue(state, location.base, location.other, recovered, cfa, value))
      return StepResult::kLost;
    if (location.where == SpecialRule::Where::kRegister) return StepResult::kCaller;
    return memory.ReadWord(value + static_cast<Address>(std::int64_t{location.offset}), value)
               ? StepResult::kCaller
               : StepResult::kBroken;
  }

  template <class Registers, StackMemory M>
  STROBE_SIGNAL_SAFE STROBE_ALWAYS_INLINE static StepResult StepSpecial(
      FrameState<Registers>& state, const M& memory, const SpecialRule& rule,
      const RecoveredRegisters* recovered) noexcept {
    Address cfa = 0;
    Address ra = state.registers.link_register();
    Address fp = state.registers.fp;
    StepResult result = FindCfa(state, memory, rule, recovered, cfa);
    if (result == StepResult::kCaller)
      result = FindValue(state, memory, rule.ra, recovered, cfa, ra);
    if (result == StepResult::kCaller)
      result = FindValue(state, memory, rule.fp, recovered, cfa, fp);
    // A caller's lr has been overwritten by its call.
    if (result == StepResult::kCaller && rule.ra.where == SpecialRule::Where::kUnchanged &&
        !state.is_exact)
      return StepResult::kBroken;
    Address lr = state.registers.link_register();
    if (result == StepResult::kCaller && rule.is_signal_frame)
      result = FindValue(state, memory, rule.lr, recovered, cfa, lr);
    if (result != StepResult::kCaller) return result;
    if (rule.is_signal_frame) {
      // The interrupted frame may be on another stack, which may lie above or below.
      if (cfa <= state.registers.sp && ++state.stack_switches > kMaxStackSwitches)
        return StepResult::kBroken;
    } else if (cfa < state.registers.sp || (cfa == state.registers.sp && !state.is_exact)) {
      return StepResult::kBroken;
    }
    result = internal::Return(state, ra, cfa, fp, rule.is_signal_frame);
    if (result == StepResult::kCaller && rule.is_signal_frame)
      state.registers.set_link_register(lr);
    return result;
  }

  const UnwindModules* modules_ = nullptr;
};
static_assert(FrameStep<CfiStep>);

}  // namespace strobe
