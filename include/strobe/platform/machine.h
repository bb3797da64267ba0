// ReadMachine: the machine tags of a process, as the system says them.
#pragma once

#include <cstdint>
#include <string>

#include "strobe/core/label_set.h"

namespace strobe::internal {

// Labels with the keys of kMachineTags; what the system does not say is missing. `root` is put
// before each path: "" but in a test. Reads some small files, of each its begin. Control plane; any
// thread. Empty on systems other than Linux.
LabelSet ReadMachine(std::uint64_t process_id, const std::string& root = "");

// The resident memory of a process in bytes; -1 if the system does not say it.
std::int64_t ReadResidentBytes(std::uint64_t process_id);

}  // namespace strobe::internal
