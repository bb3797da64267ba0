// FrameMachine: follows what instructions of x86-64 do to a function's frame.
#pragma once

#include <cstdint>

#include "frame_instruction.h"
#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Where a register is that the function has to give back.
struct KeptRegister {
  enum State : std::uint8_t {
    kInRegister,  // the caller's value, untouched
    kOnStack,     // at [CFA - slot]; the register holds something else
    kBoth,        // at [CFA - slot] and in the register
    kLost,
  };
  State state = kInRegister;
  std::int32_t slot = 0;

  [[nodiscard]] bool is_in_register() const { return state == kInRegister || state == kBoth; }
  [[nodiscard]] bool is_on_stack() const { return state == kOnStack || state == kBoth; }
  friend bool operator==(const KeptRegister&, const KeptRegister&) = default;
};

// What is known before an instruction. CFA: the stack pointer before the function's call.
struct DecodedFrame {
  static constexpr std::int32_t kNot = -1;
  std::int32_t sp_depth = 8;     // CFA - rsp
  std::int32_t fp_depth = kNot;  // CFA - rbp, if that points into the frame
  KeptRegister fp;
  KeptRegister special;  // rbx: see CpuRegisters::kSpecialRegister

  // As at the function's beginning: another function, or the caller, may go on from here.
  [[nodiscard]] bool is_left() const { return sp_depth == 8 && fp.is_in_register(); }
  friend bool operator==(const DecodedFrame&, const DecodedFrame&) = default;
};

// What is known where two paths meet.
DecodedFrame Meet(const DecodedFrame& a, const DecodedFrame& b);

class FrameMachine {
 public:
  // A greater frame has more than a stack.
  static constexpr std::int32_t kMaxDepth = 1 << 24;

  explicit FrameMachine(const DecodedFrame& frame) : frame_(frame) {}

  // What is known behind the instructions.
  [[nodiscard]] const DecodedFrame& frame() const { return frame_; }
  // A call does nothing.
  void Execute(const FrameInstruction& instruction);

 private:
  [[nodiscard]] KeptRegister* KeptOf(unsigned number);
  // CFA - (rsp + offset).
  [[nodiscard]] std::int32_t Depth(std::int32_t offset) const;
  void SetDepth(std::int32_t depth);
  void MoveSp(std::int32_t offset);
  // What lies below the stack pointer may be overwritten by the next push.
  void Release(KeptRegister& kept) const;
  void Pop(unsigned number);
  void TakeSp(const FrameInstruction& instruction);
  void Restore(unsigned number, std::int32_t depth);
  void Write(std::uint16_t written);

  DecodedFrame frame_;
};

}  // namespace internal
}  // namespace strobe
