#include "strobe/testing/thread_activity_conformance.h"

#include "strobe/platform/native.h"

namespace strobe::testing {

#if !defined(STROBE_DISABLED)
INSTANTIATE_TYPED_TEST_SUITE_P(Native, ThreadActivityConformance, NativePlatform);
#endif

}  // namespace strobe::testing
