// AddDecodedCode: unwind rules for code without frame information, read from its instructions.
#pragma once

#include <cstdint>
#include <span>

#include "strobe/base/visibility.h"
#include "strobe/unwind/cfi_compiler.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// A stretch of code for x86-64 that no frame information describes: [begin, end), from the start of
// what is compiled. `text` is the code from `before` bytes before it on. It may go on behind it, or
// end before.
struct UndescribedCode {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
  std::uint32_t before = 0;
  std::span<const std::uint8_t> text;
  bool begins_function = false;  // at `begin`
};

// Adds its rules: of assembler, and of code that a compiler was told to write no tables for. Each
// function is followed from its first instruction on, over all its branches: what it has pushed,
// and where it keeps its caller's frame pointer. Functions begin where calls lead, where the code
// says, and behind the end of another. A function is believed only if everything that leaves it has
// given back the stack and the frame pointer; the others, and code that is never reached, are
// Cfa::kLost, because a walk by frame pointers would leave frames out. What is compiled begins
// where a page does.
void AddDecodedCode(const UndescribedCode& code, CompiledCfi& compiled);

}  // namespace internal
}  // namespace strobe
