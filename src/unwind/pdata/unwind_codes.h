// The unwind codes of Windows' .xdata for x64, and the frames that they describe (Microsoft, "x64
// exception handling": "Unwind data").
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "../cfi_state.h"
#include "strobe/arch/x86_64.h"
#include "strobe/unwind/pdata_compiler.h"

namespace strobe::internal {

// An entry of .pdata.
struct RuntimeFunction {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t unwind =
      0;  // where its unwind codes are; odd: where the entry is that it continues
};
static_assert(sizeof(RuntimeFunction) == 12);

struct UnwindCode {
  enum class Kind : std::uint8_t { kPush, kAllocate, kSetFrame, kSave, kMachineFrame };
  Kind kind = Kind::kPush;
  std::uint8_t register_number = 0;  // that is pushed or saved, as X86_64Encoding numbers it
  std::uint8_t prologue_offset = 0;  // of the end of the instruction
  std::uint32_t bytes =
      // allocated; or where it is saved, from the frame's base; or of an error code, for a machine
      // frame.
      0;
};

// The codes of one function.
struct UnwindCodes {
  struct Part {
    std::uint8_t frame_register = 0;  // 0 for none
    std::uint8_t frame_offset = 0;    // how far it lies above the stack pointer, when it is set
    std::vector<UnwindCode>
        codes;  // the last instruction of the prologue first, as they are undone
  };
  std::uint8_t prologue_bytes = 0;
  std::vector<Part>
      // The function's own, then those of the functions that it continues: their prologues are
      // done.
      parts;
};

// Functions may continue one another this many times.
inline constexpr std::size_t kMaxChainedFunctions = 32;

// The codes at `position`; nothing if they cannot be understood.
std::optional<UnwindCodes> ReadUnwindCodes(const AnyMemoryReader& read, std::uint32_t position);

// How the caller's registers are found: all offsets are counted from one register's value.
struct PdataFrame {
  unsigned base = X86_64Encoding::kRsp;
  std::int64_t offset =
      // To where the return address lies; of an interrupted one, to where the machine has pushed
      // its rip.
      0;
  std::optional<std::int64_t> fp;  // offsets to where they are saved
  std::optional<std::int64_t> special;
  bool interrupted = false;  // by an exception or an interrupt: the stack pointer was pushed, too
};
// From the pushed rip to the pushed rsp: rip, cs, rflags, rsp.
inline constexpr std::int64_t kMachineFrameSp = 24;

// The frame when the prologue has come that far, in bytes.
inline constexpr unsigned kWholePrologue = std::numeric_limits<std::uint8_t>::max();
PdataFrame FrameAt(const UnwindCodes& codes, unsigned prologue_offset);

// The same as a state of DWARF's machine.
CfiState StateOf(const PdataFrame& frame);

}  // namespace strobe::internal
