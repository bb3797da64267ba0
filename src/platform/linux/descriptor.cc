#include "strobe/platform/linux/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

namespace strobe::internal {

FileIdentity FileIdentity::Of(int number) noexcept {
  const int saved_errno = errno;
  FileIdentity identity;
  struct stat info {};
  if (number >= 0 && fstat(number, &info) == 0) {
    identity = {.device = info.st_dev, .inode = info.st_ino};
    // The kernel's anonymous files are of no type. Only an event answers this.
    if ((info.st_mode & S_IFMT) == 0) ioctl(number, PERF_EVENT_IOC_ID, &identity.event);
  }
  errno = saved_errno;
  return identity;
}

int MoveToHighNumber(int number) noexcept {
  rlimit limit{};
  if (number < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0) return number;
  const int first = static_cast<int>(std::min<rlim_t>(kFirstKeptNumber, limit.rlim_cur / 2));
  if (number >= first) return number;
  const int saved_errno = errno;
  const int moved = fcntl(number, F_DUPFD_CLOEXEC, first);
  if (moved >= 0) close(number);
  errno = saved_errno;
  return moved >= 0 ? moved : number;
}

int KnownFile::Close() noexcept {
  const int known = Number();
  number = -1;
  if (known < 0) return EBADF;
  // After EINTR the file is closed all the same.
  return close(known) != 0 && errno != EINTR ? errno : 0;
}

}  // namespace strobe::internal
