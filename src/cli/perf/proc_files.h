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

// False if /proc is that of another PID namespace than this process's: its ids are others.
bool IsProcOwn();
// A process in another PID namespace calls threads and processes by other ids. These find the
// thread of `process`, or its child, that `process` calls `id`; 0 if there is none.
std::uint32_t ThreadCalled(std::uint32_t process, std::uint32_t id);
std::uint32_t ChildCalled(std::uint32_t process, std::uint32_t id);

// The kernel keeps so many bytes of the name of a program.
inline constexpr std::size_t kMaxCommBytes = 15;
// What the user has called a process: `comm`, its name by the kernel, and what the kernel has cut
// off, where the process's first argument says it.
std::string WholeProcessName(std::uint32_t process, std::string_view comm);
// The id of the container that a process is in; empty outside of containers. Nothing if the process
// has ended.
std::optional<std::string> ContainerOf(std::uint32_t process);

}  // namespace strobe::internal
