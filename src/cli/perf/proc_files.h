// What the files below /proc say of processes and threads. Nothing where a system has none.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace strobe::internal {

// The ids in a directory: of all processes in "/proc", of a process's threads in "/proc/PID/task".
std::vector<std::uint32_t> IdsIn(const std::string& directory);

// The value of a line "KEY:\tVALUE" of the status of a process or thread; empty if it has none.
std::string StatusValue(std::uint32_t id, std::string_view key);
// The same as a number; 0 if it is none.
std::uint32_t StatusNumber(std::uint32_t id, std::string_view key);

}  // namespace strobe::internal
