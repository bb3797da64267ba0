#include "strobe/testing/platform_conformance.h"

#include "strobe/platform/native.h"

namespace strobe::testing {

#if !defined(STROBE_DISABLED)
INSTANTIATE_TYPED_TEST_SUITE_P(Native, PlatformConformance, NativePlatform);
#endif

}  // namespace strobe::testing
