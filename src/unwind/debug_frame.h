// .debug_frame, the frame information of debuggers, for a reader of .eh_frame.
#pragma once

#include <cstdint>
#include <vector>

#include "strobe/base/address.h"

namespace strobe::internal {

// Turns a .debug_frame into an .eh_frame of the same length, up to what cannot be understood: there
// a CIE has another number, an FDE says how far before itself its CIE is, and its code lies where
// the module has been loaded.
void MakeEhFrame(std::vector<std::uint8_t>& bytes, Address load_bias);

}  // namespace strobe::internal
