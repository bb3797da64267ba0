// ProgramEnd: how a process that is no child of this one has ended.
#pragma once

#include <cstdint>
#include <string>

#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// "exited with status 3", "killed by signal 9", or "ended" if the system does not say more. Waits
// until it has ended, at most for that time: "closed its connection" after that. `process` is a
// descriptor from pidfd_open, or -1.
//
// The status is in /proc as long as the parent has not waited for the process, for who may trace
// it. Then the kernel tells it by the descriptor (PIDFD_GET_INFO, Linux 6.15).
std::string EndOfProcess(int process, std::uint64_t process_id, std::int64_t timeout_ns);

}  // namespace internal
}  // namespace strobe
