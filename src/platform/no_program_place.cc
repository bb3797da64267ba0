#include "strobe/platform/machine.h"
#include "strobe/platform/program_place.h"

namespace strobe::internal {

std::string HostName() { return {}; }
std::string ContainerId() { return {}; }
std::string ProgramCommandLine() { return {}; }
LabelSet ReadMachine(std::uint64_t /*process_id*/, const std::string& /*root*/) { return {}; }
std::int64_t ReadResidentBytes(std::uint64_t /*process_id*/) { return -1; }

}  // namespace strobe::internal
