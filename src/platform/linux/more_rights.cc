#include <sys/auxv.h>

#include "strobe/platform/linux/linux_platform.h"

namespace strobe {

bool LinuxPlatform::HasMoreRights() noexcept { return getauxval(AT_SECURE) != 0; }

}  // namespace strobe
