#include "running_targets.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

constexpr unsigned kOfThread = O_EXCL;  // PIDFD_THREAD, since Linux 6.9

Descriptor OpenTarget(std::uint32_t id, unsigned flags) {
  return Descriptor(static_cast<int>(syscall(SYS_pidfd_open, id, flags)));
}

// Threads are in /proc, too, although it does not list them.
bool IsThere(std::uint32_t id) { return access(absl::StrCat("/proc/", id).c_str(), F_OK) == 0; }

}  // namespace

RunningTargets::RunningTargets(std::span<const std::uint32_t> processes,
                               std::span<const std::uint32_t> threads) {
  for (const std::uint32_t id : processes) targets_.push_back({id, OpenTarget(id, 0)});
  for (const std::uint32_t id : threads) targets_.push_back({id, OpenTarget(id, kOfThread)});
}

std::vector<pollfd> RunningTargets::Polled() const {
  std::vector<pollfd> polled;
  for (const Target& target : targets_) polled.push_back({target.descriptor.get(), POLLIN, 0});
  return polled;
}

bool RunningTargets::HaveEnded(std::span<pollfd> polled) {
  for (std::size_t i = 0; i < targets_.size(); ++i) {
    Target& target = targets_[i];
    const bool is_told = (polled[i].revents & POLLIN) != 0;
    if (!is_told && (target.descriptor.is_open() || IsThere(target.id))) continue;
    target.has_ended = true;
    polled[i] = {-1, 0, 0};
  }
  return !targets_.empty() && std::ranges::all_of(targets_, &Target::has_ended);
}

}  // namespace strobe::internal
