#include "strobe/base/checked_containers.h"

namespace strobe::internal {

const char STROBE_CONTAINERS = 0;

}  // namespace strobe::internal
