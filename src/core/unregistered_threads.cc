#include "strobe/core/unregistered_threads.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"

namespace strobe::internal {

std::string TextOf(const UnregisteredThreads& unregistered, const std::string& when) {
  if (unregistered.share <= 0) return {};
  const std::string who =
      unregistered.count == 0
          ? std::string("they have ended or registered since")
          : absl::StrCat(unregistered.count,
                         unregistered.count == 1 ? " thread: " : " threads: ", unregistered.names);
  return absl::StrFormat(
      "%.0f %% of the process's CPU time %s was in threads that are not registered (%s)",
      100 * unregistered.share, when, who);
}

}  // namespace strobe::internal
