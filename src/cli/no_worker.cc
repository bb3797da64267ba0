#include "worker.h"

namespace strobe::internal {

void ServeIfAsked(int /*argc*/, char** /*argv*/) {}

}  // namespace strobe::internal
