// Rules for code that call frame information describes badly or not at all. A process has one
// instance of each.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "strobe/unwind/cfi_compiler.h"
#include "strobe/unwind/unwind_rule.h"

namespace strobe {

// The rule of the frame that Linux pushes for a signal on aarch64. Every register lies in it, at a
// distance from sp that is part of the system's interface.
SpecialRule Aarch64SignalFrame();

// Puts Aarch64SignalFrame wherever `text`, the module's code from its start on, has the two
// instructions that a signal's handler returns to: `mov x8, #139; svc #0`. Kernels from 5.8 on
// have no call frame information for them. That of older kernels skips the interrupted function, so
// it is replaced.
void AddAarch64SignalTrampolines(std::span<const std::uint8_t> text, CompiledCfi& compiled);

// Adds rules for ___chkstk_ms wherever `text` has it. mingw-w64's functions with a frame of more
// than a page call it to touch each page. It has no frame information, so that a walk would take it
// for a function that pushes nothing.
void AddStackProbes(std::span<const std::uint8_t> text, CompiledCfi& compiled);

// Ends stacks at the code that the first function of a stack returns to: that of Boost.Context's
// make_fcontext and its many copies, that of Go's goroutines, and that of musl's threads and
// programs. (AddStackEnd serves makecontext.) All are assembler without frame information. `text`
// is a stretch of code for x86-64 that has none, and begins at `offset`.
void AddKnownStackEnds(std::uint32_t offset, std::span<const std::uint8_t> text,
                       CompiledCfi& compiled);

// Adds rules for the stubs of procedure linkage tables, for which lld and mold write no frame
// information. `text` is a stretch of code for x86-64 that has none, and begins at `offset`.
void AddLinkageStubs(std::uint32_t offset, std::span<const std::uint8_t> text,
                     CompiledCfi& compiled);

// A stretch of code without frame information.
struct UnknownStretch {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;
};
// The stretches of at least `least_bytes` in the text of `text_bytes` that `compiled` describes.
std::vector<UnknownStretch> UnknownStretches(const CompiledCfi& compiled, std::uint32_t text_bytes,
                                             std::uint32_t least_bytes);

// Replaces the rows in [begin, end) by `rows`, which begin there. What holds from `end` on stays.
void ReplaceRows(CompiledCfi& compiled, std::uint32_t begin, std::uint32_t end,
                 std::span<const UnwindRow> rows);

// Ends stacks at a function that was never called: its return address was stored by hand, and is
// the code at `offset`.
void AddStackEnd(std::uint32_t offset, CompiledCfi& compiled);

}  // namespace strobe
