// The container of a PDB file, which holds the debug information of a Windows image.
#pragma once

#include "../images/byte_source.h"

namespace strobe::internal {

// True if the file is as long as its header says. A truncated file must not be given to the
// system's library: Wine's library frees memory that it never set.
bool IsWholePdb(const ByteSource& source);

}  // namespace strobe::internal
