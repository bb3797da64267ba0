// The one place that picks the platform.
#pragma once

#if !defined(STROBE_DISABLED) && defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#include "strobe/platform/linux/linux_platform.h"

namespace strobe {
using NativePlatform = LinuxPlatform;
}  // namespace strobe
#else
#include "strobe/platform/unsupported_platform.h"

namespace strobe {
using NativePlatform = UnsupportedPlatform;
}  // namespace strobe
#endif
