#include "worker_output.h"

namespace strobe::internal {

constinit const std::string_view kHttpOutputs = " (this command was built without HTTP)";

Serve ServeWithHttpOutput(std::string_view /*name*/) { return {}; }

}  // namespace strobe::internal
