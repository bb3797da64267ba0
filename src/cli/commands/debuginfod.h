// Debug information from servers of the protocol debuginfod, by elfutils' client library.
#pragma once

#include <functional>
#include <string>

namespace strobe::internal {

// A SymbolSearch::fetch that asks the servers in the environment's DEBUGINFOD_URLS; nullptr if it
// names none, or if this build has no client library. The library keeps what it fetches, bounds
// its waits by DEBUGINFOD_TIMEOUT, and shows its progress if DEBUGINFOD_PROGRESS is set. For one
// thread.
std::function<std::string(const std::string& build_id)> DebuginfodFetcher();

}  // namespace strobe::internal
