// Where generated code begins that nobody runs.
#pragma once

#include "strobe/base/address.h"

namespace strobe::testing {

inline const void* CodeAt(Address address) { return reinterpret_cast<const void*>(address); }

}  // namespace strobe::testing
