// What must hold where no test can fail: in fuzzers, and in processes of their own.
#pragma once

#include <cstdio>
#include <cstdlib>

namespace strobe::testing {

// Ends the program with one line on standard error if the condition does not hold.
inline void Check(bool condition, const char* message, const char* file = __builtin_FILE(),
                  int line = __builtin_LINE()) {
  if (condition) return;
  std::fprintf(stderr, "%s:%d: %s\n", file, line, message);
  std::abort();
}

}  // namespace strobe::testing
