// KeepRegistersAtCalls: rows whose register holds across a call.
#pragma once

#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/memory_reader.h"
#include "strobe/unwind/cfi_compiler.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Rows of `compiled`, which begins at `start`, may count the CFA from a register that a walk knows
// for the innermost frame alone. Adds rows to those: at each call of code that leaves the register
// alone, walks from that code may count from it. See SpecialRule::Base::kKept.
void KeepRegistersAtCalls(Address start, const AnyMemoryReader& read, CompiledCfi& compiled);

}  // namespace internal
}  // namespace strobe
