// Whether a worker process can be begun here.
#pragma once

namespace strobe::testing {

// ThreadSanitizer takes each clone for a fork, and ends the program at the second one, which is
// nested in the first.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
inline constexpr bool kCanBeginWorkers = false;
#else
inline constexpr bool kCanBeginWorkers = true;
#endif
#else
inline constexpr bool kCanBeginWorkers = true;
#endif

}  // namespace strobe::testing
