// CountCallFilters: how many filters of system calls (seccomp) are in force.
#pragma once

#include "strobe/base/visibility.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Of the calling thread, by the status that /proc has of it. Before Linux 5.9, which does not count
// them, 1 stands for any number. -1 if the status cannot be read. Signal-safe, and for a child of
// vfork.
int CountCallFilters() noexcept;

}  // namespace internal
}  // namespace strobe
