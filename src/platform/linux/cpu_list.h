// ParseCpus: lists of CPUs as the kernel writes them.
#pragma once

#include <string_view>
#include <vector>

namespace strobe::internal {

// The CPUs of a list as "0-3,5", in the format of /sys/devices/system/cpu/online and of
// Cpus_allowed_list. Leaves out what is no number or range, and what no kernel has so many of.
std::vector<int> ParseCpus(std::string_view list);

}  // namespace strobe::internal
