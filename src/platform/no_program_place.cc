#include "strobe/platform/program_place.h"

namespace strobe::internal {

std::string HostName() { return {}; }
std::string ContainerId() { return {}; }
std::string ProgramCommandLine() { return {}; }

}  // namespace strobe::internal
