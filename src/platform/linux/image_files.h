// The files that loaded images come from.
#pragma once

#include <cstdint>
#include <string>

#include "strobe/base/address.h"

namespace strobe::internal {

// The running program's file. Without /proc, by the name that it was started by.
std::string ProgramPath();

// The file that is mapped at `address`, which the loader calls `name`. A name that is relative to
// some directory, perhaps not to today's, is looked up in the kernel's list of mappings; without
// /proc it is taken to be relative to today's, if there is such a file.
std::string AbsoluteImagePath(const std::string& name, Address address);

// Tells a file from what it is when it has been written anew; 0 where there is none.
std::uint64_t FileVersionOf(const std::string& path);

// Where the program's own file says that .eh_frame lies, in its virtual addresses: plain -static
// leaves the index out that a segment would name. 0 where there is none.
Address ReadEhFrameSection();

}  // namespace strobe::internal
