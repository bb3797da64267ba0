// The sanitizers that this code is built with. Each reports on standard error.
#pragma once

namespace strobe::internal {

// g++ says it by macros, clang by features.
#if defined(__has_feature)
inline constexpr bool kHasAddressSanitizer = __has_feature(address_sanitizer);
inline constexpr bool kHasThreadSanitizer = __has_feature(thread_sanitizer);
// g++ does not say it.
inline constexpr bool kHasUndefinedBehaviorSanitizer = __has_feature(undefined_behavior_sanitizer);
#else
#if defined(__SANITIZE_ADDRESS__)
inline constexpr bool kHasAddressSanitizer = true;
#else
inline constexpr bool kHasAddressSanitizer = false;
#endif
#if defined(__SANITIZE_THREAD__)
inline constexpr bool kHasThreadSanitizer = true;
#else
inline constexpr bool kHasThreadSanitizer = false;
#endif
inline constexpr bool kHasUndefinedBehaviorSanitizer = false;
#endif

}  // namespace strobe::internal
