// What the files below /proc say of processes and threads. Nothing where a system has none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
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

// The kernel keeps so many bytes of the name of a program.
inline constexpr std::size_t kMaxCommBytes = 15;
// What the user has called a process: `comm`, its name by the kernel, and what the kernel has cut
// off, where the process's first argument says it.
std::string WholeProcessName(std::uint32_t process, std::string_view comm);
// The id of the container that a process is in; empty outside of containers. Nothing if the process
// has ended.
std::optional<std::string> ContainerOf(std::uint32_t process);

}  // namespace strobe::internal
