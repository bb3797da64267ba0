// The statuses that the command exits with.
#pragma once

namespace strobe::internal {

inline constexpr int kFailed = 1;       // a file or a pattern does not work
inline constexpr int kRegression = 1;   // strobe ci: a significant change for the worse
inline constexpr int kWrongUse = 2;     // wrong arguments
inline constexpr int kBeyondLimit = 3;  // strobe diff --fail-if: a change is beyond the limit
inline constexpr int kCannotRun = 126;  // as of a shell: a program that cannot be run
inline constexpr int kNotFound = 127;   // or is not there

}  // namespace strobe::internal
