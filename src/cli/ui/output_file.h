// An output of the command: the file has all of the new bytes, or what it had before.
#pragma once

#include <string>

#include "absl/status/status.h"

namespace strobe::internal {

// Writes the bytes to a temporary file beside `path`, and renames that. A file that is there keeps
// its mode, and its owner if the system allows it. What is no regular file (a pipe, a device) is
// written as it is, and so is a file in a directory where no other can be made. A link is followed
// if the user or root has made it, and replaced otherwise: in a directory of others it may lead
// anywhere. An error names the file and has the system's reason.
absl::Status WriteFile(const std::string& path, const std::string& bytes);

// OK if WriteFile can write there, as far as is known before: nothing is written. Else the error of
// WriteFile.
absl::Status CheckOutput(const std::string& path);

}  // namespace strobe::internal
