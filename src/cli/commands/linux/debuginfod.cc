#include "commands/debuginfod.h"

#include <elfutils/debuginfod.h>
#include <unistd.h>

#include <cstdlib>
#include <memory>

namespace strobe::internal {

std::function<std::string(const std::string& build_id)> DebuginfodFetcher() {
  const char* const urls = std::getenv(DEBUGINFOD_URLS_ENV_VAR);
  if (urls == nullptr || *urls == '\0') return nullptr;
  const std::shared_ptr<debuginfod_client> client(debuginfod_begin(), [](debuginfod_client* owned) {
    if (owned != nullptr) debuginfod_end(owned);
  });
  if (client == nullptr) return nullptr;
  return [client](const std::string& build_id) {
    char* path = nullptr;
    // A length of 0 says that the build id is text.
    const int file = debuginfod_find_debuginfo(
        client.get(), reinterpret_cast<const unsigned char*>(build_id.c_str()), 0, &path);
    if (file < 0) return std::string();
    close(file);
    const std::unique_ptr<char, decltype(&std::free)> owned(path, &std::free);
    return std::string(path);
  };
}

}  // namespace strobe::internal
