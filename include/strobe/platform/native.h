// The one place that picks the platform.
#pragma once

#if !defined(STROBE_DISABLED) && defined(__linux__) && (defined(__x86_64__) || defined(__aarch64__))
#include "strobe/platform/linux/linux_platform.h"

namespace strobe {
using NativePlatform = LinuxPlatform;
}  // namespace strobe
#elif !defined(STROBE_DISABLED) && defined(_WIN32) && (defined(__x86_64__) || defined(_M_X64))
#include "strobe/platform/windows/windows_platform.h"

namespace strobe {
using NativePlatform = WindowsPlatform;
}  // namespace strobe
#else
#include "strobe/platform/unsupported_platform.h"

namespace strobe {
using NativePlatform = UnsupportedPlatform;
}  // namespace strobe
#endif
