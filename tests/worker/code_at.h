// CodeAt: an address for generated code that tests register and never execute.
#pragma once

#include "strobe/base/address.h"

namespace strobe::testing {

inline const void* CodeAt(Address address) { return reinterpret_cast<const void*>(address); }

}  // namespace strobe::testing
