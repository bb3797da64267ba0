#include "strobe/base/keep_for_ever.h"

// LeakSanitizer's function, if the program is built with it.
#if defined(__ELF__)
// NOLINTNEXTLINE(bugprone-reserved-identifier)
extern "C" __attribute__((weak)) void __lsan_ignore_object(const void* object);
#endif

namespace strobe::internal {

void KeepForEver([[maybe_unused]] const void* object) {
#if defined(__ELF__)
  if (&__lsan_ignore_object != nullptr) __lsan_ignore_object(object);
#endif
}

}  // namespace strobe::internal
