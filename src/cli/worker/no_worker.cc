#include "commands/command_line.h"
#include "worker.h"

namespace strobe::internal {

void ServeIfAsked(int /*argc*/, char** /*argv*/) {}

void AddWorker(CommandLine& /*line*/) {}

}  // namespace strobe::internal
