// The native platform has this system's files, and so has a processor that cannot be profiled yet.
#include "strobe/testing/platform_files_conformance.h"

#include "strobe/platform/native.h"
#include "strobe/platform/unsupported_platform.h"

namespace strobe::testing {

INSTANTIATE_TYPED_TEST_SUITE_P(Native, PlatformFilesConformance, NativePlatform);
INSTANTIATE_TYPED_TEST_SUITE_P(Unsupported, PlatformFilesConformance, UnsupportedPlatform);

}  // namespace strobe::testing
