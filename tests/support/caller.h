// The place in a test that calls a helper. What std::source_location is for, which clang 14 lacks.
#pragma once

namespace strobe::testing {

struct Caller {
  // As a default argument of a helper, the place that calls the helper.
  static constexpr Caller Here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) {
    return {.file = file, .line = line};
  }

  const char* file;
  int line;
};

}  // namespace strobe::testing
