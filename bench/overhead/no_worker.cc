#include "worker.h"

namespace strobe::testing {

bool ServeIfAsked(int /*argc*/, char** /*argv*/) { return false; }

}  // namespace strobe::testing
