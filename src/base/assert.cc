#include "strobe/base/assert.h"

#include <cstdio>
#include <cstdlib>

namespace strobe::internal {

void CheckFailed(const char* file, int line, const char* message) {
  std::fprintf(stderr, "strobe: %s:%d: %s\n", file, line, message);
  std::abort();
}

}  // namespace strobe::internal
