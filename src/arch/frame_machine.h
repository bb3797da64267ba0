// FrameMachine: follows what instructions of x86-64 do to a function's frame.
#pragma once

#include <array>
#include <bit>
#include <cstdint>

#include "frame_instruction.h"
#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// What is known of an address: that it is base + offset.
struct FramePlace {
  enum Base : std::uint32_t {
    kUnknown,
    kCfa,     // the stack pointer before the function's call
    kAnchor,  // what the stack pointer was set to last, in a way that tells nothing: aligned, say
    kCode,    // the beginning of the code
    kEntry,   // an entry of a table in the code; the offset is 0
    kTarget,  // where such an entry leads; the offset is 0
  };
  // A greater frame has more than a stack.
  static constexpr std::int64_t kMaxOffset = 1 << 24;

  std::uint32_t base : 3 = kUnknown;
  std::int32_t offset : 29 = 0;

  [[nodiscard]] bool is_in_frame() const { return base == kCfa || base == kAnchor; }
  // base + offset + `distance`.
  [[nodiscard]] FramePlace At(std::int64_t distance) const;
  friend bool operator==(FramePlace a, FramePlace b) {
    return std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b);
  }
};
static_assert(sizeof(FramePlace) == sizeof(std::uint32_t));

// Where a register is that the function has to give back.
struct KeptRegister {
  enum State : std::uint8_t {
    kInRegister,  // the caller's value, untouched
    kOnStack,     // at `slot`; the register holds something else
    kBoth,        // at `slot` and in the register
    kLost,
  };
  State state = kInRegister;
  FramePlace slot;

  [[nodiscard]] bool is_in_register() const { return state == kInRegister || state == kBoth; }
  [[nodiscard]] bool is_on_stack() const { return state == kOnStack || state == kBoth; }
  friend bool operator==(const KeptRegister&, const KeptRegister&) = default;
};

// What is known before an instruction.
struct DecodedFrame {
  static constexpr FramePlace kAtCall{FramePlace::kCfa, -8};
  // By their encodings: the registers that a walk knows in each frame, and in most.
  static constexpr unsigned kSp = X86_64Encoding::kRsp;
  static constexpr unsigned kFp = X86_64Encoding::kRbp;
  static constexpr unsigned kSpecial = X86_64Encoding::kRbx;
  // The others, first those that functions give back.
  static constexpr unsigned kOthers[] = {12, 13, 14, 15, 0, 1, 2, 6, 7, 8, 9, 10, 11};

  // What registers hold, by their encodings, as far as it is an address of the frame or the code.
  // The stack pointer's is always in the frame.
  std::array<FramePlace, kX86_64GeneralRegisters> places = AtCall();
  // A word of the frame that has such an address, if one has. The first that an aligned frame has
  // counts: there, functions look for their caller's stack pointer in the end.
  FramePlace link;
  FramePlace link_place;  // the address
  KeptRegister fp;
  KeptRegister special;  // rbx: see CpuRegisters::kSpecialRegister

  [[nodiscard]] FramePlace sp() const { return places[kSp]; }
  // As at the function's beginning: another function, or the caller, may go on from here.
  [[nodiscard]] bool is_left() const { return sp() == kAtCall && fp.is_in_register(); }
  friend bool operator==(const DecodedFrame&, const DecodedFrame&) = default;

 private:
  static constexpr std::array<FramePlace, kX86_64GeneralRegisters> AtCall() {
    std::array<FramePlace, kX86_64GeneralRegisters> places{};
    places[kSp] = kAtCall;
    return places;
  }
};

// What is known where two paths meet.
DecodedFrame Meet(const DecodedFrame& a, const DecodedFrame& b);

// Whether both find the caller in the same way, here and behind: other addresses of the code do not
// count.
bool IsSame(const DecodedFrame& a, const DecodedFrame& b);

class FrameMachine {
 public:
  explicit FrameMachine(const DecodedFrame& frame) : frame_(frame) {}

  // What is known behind the instructions.
  [[nodiscard]] const DecodedFrame& frame() const { return frame_; }
  // `next` is where the instruction ends in the code. A call does nothing; see Forget.
  void Execute(const FrameInstruction& instruction, std::uint32_t next);
  // What is called has written these.
  void Forget(RegisterSet written) { Write(written); }

 private:
  [[nodiscard]] FramePlace& PlaceOf(unsigned number) { return frame_.places[number]; }
  [[nodiscard]] KeptRegister* KeptOf(unsigned number);
  void SetSp(FramePlace place);
  void SetRegister(unsigned number, FramePlace place);
  void Store(unsigned number, FramePlace slot);
  void Load(unsigned number, FramePlace slot);
  void Push(unsigned number);
  void Pop(unsigned number);
  void ExecuteOther(const FrameInstruction& instruction);
  void Write(RegisterSet written);

  DecodedFrame frame_;
};

}  // namespace internal
}  // namespace strobe
