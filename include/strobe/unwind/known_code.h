// Code that call frame information describes badly or not at all, and how to leave it: of each
// there is one piece in a process.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strobe/unwind/cfi_compiler.h"
#include "strobe/unwind/unwind_rule.h"

namespace strobe {

// How to leave the frame that Linux pushes on aarch64 when a signal comes: every register lies in
// it, at a distance from sp that is part of the system's interface.
SpecialRule Aarch64SignalFrame();

// Puts Aarch64SignalFrame wherever `text`, the module's code from its start on, has the two
// instructions that a signal's handler returns to: `mov x8, #139; svc #0`. Kernels from 5.8 on
// write no call frame information for them, and that of older ones leads past the function that was
// interrupted, so it gives way.
void AddAarch64SignalTrampolines(std::span<const std::uint8_t> text, CompiledCfi& compiled);

// Describes ___chkstk_ms wherever `text` has it: mingw-w64's functions with a frame of more than a
// page call it to touch each page, and no frame information is written for it, so that it would
// pass for a function that pushes nothing.
void AddStackProbes(std::span<const std::uint8_t> text, CompiledCfi& compiled);

// Lets stacks end where coroutines begin that were not made by makecontext: at the code that
// Boost.Context's make_fcontext, and the many copies of it, have a coroutine's first function
// return to, and at that which Go's goroutines return to. Both are assembler without frame
// information. `text` is a stretch of code for x86-64 that has none, and begins at `offset`.
void AddCoroutineEnds(std::uint32_t offset, std::span<const std::uint8_t> text,
                      CompiledCfi& compiled);

// A stretch of code without frame information.
struct UnknownStretch {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};
// Those of at least `least_bytes` in the text of `text_bytes` that `compiled` describes.
std::vector<UnknownStretch> UnknownStretches(const CompiledCfi& compiled, std::uint32_t text_bytes,
                                             std::uint32_t least_bytes);

// Lets stacks end at a function that was never called: one whose return address was put there by
// hand, to the code at `offset`.
void AddStackEnd(std::uint32_t offset, CompiledCfi& compiled);

}  // namespace strobe
