#include "worker_output.h"

namespace strobe::internal {

std::string HttpOutputs() { return " (this command was built without HTTP)"; }

Serve ServeWithHttpOutput(std::string_view /*name*/) { return {}; }

}  // namespace strobe::internal
