// The container of a PDB file, which holds the debug information of a Windows image.
#pragma once

#include "byte_source.h"

namespace strobe::internal {

// Whether the file is there as far as its beginning says. One that was cut short must not be given
// to the system's library: Wine's frees memory that it never set. It is not asked again for the
// same image.
bool IsWholePdb(const ByteSource& source);

}  // namespace strobe::internal
