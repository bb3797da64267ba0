// Where the program runs, and how it was started, as the system says it. Control plane; each call
// asks the system anew.
#pragma once

#include <string>
#include <string_view>

namespace strobe::internal {

// The host's name; empty if unknown.
std::string HostName();

// The id of the container that the process is in: 64 hexadecimal digits, or a UUID. Empty outside
// of containers, and where the system does not say.
std::string ContainerId();

// The same in the text of /proc/<pid>/cgroup: the last part of a control group's path that looks
// like an id.
std::string ContainerIdIn(std::string_view control_groups);

// The program's arguments, each but the last with a NUL behind it; empty where the system does not
// say.
std::string ProgramCommandLine();

}  // namespace strobe::internal
