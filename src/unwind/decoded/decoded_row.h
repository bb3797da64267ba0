// DecodedRow: the unwind rule of what a function's code says of its frame.
#pragma once

#include <optional>
#include <vector>

#include "arch/frame_machine.h"
#include "strobe/base/visibility.h"
#include "strobe/unwind/unwind_rule.h"
#include "strobe/unwind/unwind_table.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The row of an instruction before which `frame` holds; nothing if no rule can say it. A rule that
// is not plain is added to `specials`, once.
std::optional<UnwindRow> DecodedRow(const DecodedFrame& frame, std::vector<SpecialRule>& specials);

}  // namespace internal
}  // namespace strobe
