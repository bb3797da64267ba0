// Signal frames of Linux on aarch64, which no call frame information describes well: kernels from 5.8 on write none for the code that
// returns from a signal's handler, and that of older ones leads past the function that was interrupted. So the code itself is looked for.
#pragma once

#include <cstdint>
#include <span>

#include "strobe/unwind/cfi_compiler.h"
#include "strobe/unwind/unwind_rule.h"

namespace strobe {

// How to leave the frame that the kernel pushes: every register lies in it, at a distance from sp that is part of the system's interface.
SpecialRule Aarch64SignalFrame();

// Adds Aarch64SignalFrame to what was compiled of a module wherever `text`, the module's code from its start on, holds the two instructions
// `mov x8, #139; svc #0`. It takes the place of what the call frame information says there.
void AddAarch64SignalTrampolines(std::span<const std::uint8_t> text, CompiledCfi& compiled);

}  // namespace strobe
