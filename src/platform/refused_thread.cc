#include "strobe/platform/refused_thread.h"

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/strings/str_cat.h"
#include "strobe/base/memory_guard.h"

namespace strobe::internal {

absl::Status RefusedThread(std::string_view use, int error) noexcept {
  absl::Status status = OutOfMemory();
  static_cast<void>(HasMemoryFor([&] {
    const char* const reason = std::strerror(error == 0 ? ENOMEM : error);
    status = absl::ResourceExhaustedError(
        absl::StrCat("the system refuses a thread for ", std::string(use), ": ", reason));
  }));
  return status;
}

}  // namespace strobe::internal
