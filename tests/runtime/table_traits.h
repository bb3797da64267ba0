// Traits whose unwinder has tables, and the text that the tables are of.
#pragma once

#include "manual_traits.h"
#include "strobe/unwind/cfi_step.h"
#include "strobe/unwind/chain_unwinder.h"

namespace strobe::testing {

struct TableTraits : ManualTraits {
  using Unwinder = ChainUnwinder<CfiStep, FramePointerStep>;
};

inline constexpr Address kText = 0x400000;

}  // namespace strobe::testing
