#include "strobe/base/checked_containers.h"

namespace strobe::internal {

#ifdef _GLIBCXX_DEBUG
const char library_is_built_with_GLIBCXX_DEBUG = 0;
#else
const char library_is_built_without_GLIBCXX_DEBUG = 0;
#endif

}  // namespace strobe::internal
