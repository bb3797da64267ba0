#include "platform/test_system.h"

#include <sys/utsname.h>
#include <unistd.h>

#include <cstdlib>

namespace strobe::testing {

void SetVariable(const char* name, const std::string& value) { setenv(name, value.c_str(), 1); }
void UnsetVariable(const char* name) { unsetenv(name); }

std::string ProcessorName() {
  utsname machine{};
  return uname(&machine) == 0 ? machine.machine : "";
}

std::size_t DataCacheLineBytes() {
  const long line_bytes = sysconf(_SC_LEVEL1_DCACHE_LINESIZE);
  return line_bytes > 0 ? static_cast<std::size_t>(line_bytes) : 0;
}

TemporaryDirectory::TemporaryDirectory() {
  std::string pattern = (std::filesystem::temp_directory_path() / "strobe_test_XXXXXX").string();
  if (mkdtemp(pattern.data()) == nullptr) std::abort();
  path_ = pattern;
}

}  // namespace strobe::testing
