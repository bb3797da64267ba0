// Small files of the kernel, such as those in /proc.
#pragma once

#include <string>

namespace strobe::internal {

// The first 4096 bytes; empty if the file cannot be read.
std::string ReadStart(const std::string& path);

}  // namespace strobe::internal
