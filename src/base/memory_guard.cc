#include "strobe/base/memory_guard.h"

#include <new>

namespace strobe::internal {

bool CallGuarded(void (*function)(void* context), void* context) {
  try {
    function(context);
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

absl::Status MakeStatus(absl::StatusCode code, std::string_view message) noexcept {
  absl::Status status(code, "");  // without a message it takes no memory
  static_cast<void>(HasMemoryFor(
      [&] { status = absl::Status(code, absl::string_view(message.data(), message.size())); }));
  return status;
}

}  // namespace strobe::internal
