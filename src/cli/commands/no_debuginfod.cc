#include "debuginfod.h"

namespace strobe::internal {

std::function<std::string(const std::string& build_id)> DebuginfodFetcher() { return nullptr; }

}  // namespace strobe::internal
