#include "strobe/runtime/threads/signal_mask.h"

#include "absl/strings/str_cat.h"

namespace strobe::internal {

std::string BlockingThreads(std::uint64_t count, int signal) {
  return absl::StrCat(
      "the registered threads that block signal ", signal, " are not sampled, now ", count,
      ": their time is in [residual]. Unblock it there, or set sampling.unblock_signal.");
}

}  // namespace strobe::internal
