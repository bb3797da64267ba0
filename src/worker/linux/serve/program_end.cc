#include "program_end.h"

#include <poll.h>
#include <sys/ioctl.h>
#include <sys/wait.h>

#include <charconv>
#include <optional>
#include <string_view>

#include "../../../platform/linux/files/small_file.h"
#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

// The kernel's struct pidfd_info of Linux 6.15; older headers do not have it.
struct PidfdInfo {
  std::uint64_t mask = 0;
  std::uint64_t cgroup = 0;
  std::uint32_t ids[11] = {};
  std::int32_t exit_code = 0;
};
static_assert(sizeof(PidfdInfo) == 64);
constexpr std::uint64_t kInfoExit = 1 << 3;  // PIDFD_INFO_EXIT

// As wait() has it. Known once the parent has waited for the process.
std::optional<int> StatusByDescriptor(int process) {
  constexpr unsigned long kGetInfo = _IOWR(0xFF, 11, PidfdInfo);  // PIDFD_GET_INFO
  PidfdInfo info{.mask = kInfoExit};
  if (ioctl(process, kGetInfo, &info) != 0 || (info.mask & kInfoExit) == 0) return std::nullopt;
  return info.exit_code;
}

// The same, by the last field of its stat file. Known until the parent has waited for the process.
std::optional<int> StatusByFile(std::uint64_t process_id) {
  std::string text = ReadStart(absl::StrCat("/proc/", process_id, "/stat"));
  while (!text.empty() && text.back() == '\n') text.pop_back();
  // The state follows the name, which may hold anything.
  const std::size_t name_end = text.rfind(") ");
  if (name_end == std::string::npos || text[name_end + 2] != 'Z') return std::nullopt;
  const std::size_t last = text.rfind(' ') + 1;
  int status = 0;
  const auto read = std::from_chars(text.data() + last, text.data() + text.size(), status);
  if (read.ec != std::errc() || read.ptr != text.data() + text.size()) return std::nullopt;
  return status;
}

}  // namespace

std::string EndOfProcess(int process, std::uint64_t process_id, std::int64_t timeout_ns) {
  pollfd ended{.fd = process, .events = POLLIN, .revents = 0};
  if (process >= 0 && poll(&ended, 1, static_cast<int>(timeout_ns / 1'000'000)) <= 0)
    return "closed its connection";
  std::optional<int> status = StatusByDescriptor(process);
  if (!status) status = StatusByFile(process_id);
  if (!status) status = StatusByDescriptor(process);  // the parent has waited for it meanwhile
  if (!status) return "ended";
  if (WIFSIGNALED(*status)) return absl::StrCat("killed by signal ", WTERMSIG(*status));
  return absl::StrCat("exited with status ", WEXITSTATUS(*status));
}

}  // namespace strobe::internal
