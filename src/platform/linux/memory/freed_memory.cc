#include "freed_memory.h"

#include <malloc.h>

namespace strobe::internal {

void GiveFreedMemoryBack() {
#ifdef __GLIBC__
  malloc_trim(0);
#endif
}

}  // namespace strobe::internal
