#include "strobe/platform/linux/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>

namespace strobe::internal {
namespace {

// Of a file of the process's first thread.
std::array<char, 32> PathOf(int number) {
  std::array<char, 32> path{};
  std::snprintf(path.data(), path.size(), "/proc/self/fd/%d", number);
  return path;
}

}  // namespace

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

KnownFile KnownFile::Of(int open_number) noexcept {
  return MoveUp({.number = open_number, .identity = FileIdentity::Of(open_number)});
}

KnownFile KnownFile::OfEvent(int open_number) noexcept {
  const KnownFile file{.number = open_number, .identity = FileIdentity::Of(open_number)};
  return file.identity.event != 0 ? MoveUp(file) : KnownFile();
}

// Another thread of the program may take either number at any time.
KnownFile KnownFile::MoveUp(KnownFile file) noexcept {
  rlimit limit{};
  if (file.number < 0 || getrlimit(RLIMIT_NOFILE, &limit) != 0) return file;
  const int first = static_cast<int>(std::min<rlim_t>(kFirstKeptNumber, limit.rlim_cur / 2));
  if (file.number >= first) return file;
  const int saved_errno = errno;
  const KnownFile moved{.number = fcntl(file.number, F_DUPFD_CLOEXEC, first),
                        .identity = file.identity};
  if (moved.number >= 0) {
    // What has been copied may be the program's by now. The copy is none of it.
    const bool is_that_file = moved.Number() >= 0;
    if (!is_that_file) close(moved.number);
    file.Close();
    file = is_that_file ? moved : KnownFile();
  }
  errno = saved_errno;
  return file;
}

bool KnownFile::IsElsewhere() const noexcept {
  if (number < 0 || Number() >= 0) return false;
  const int saved_errno = errno;
  // What the first thread has, whichever thread asks. Events of perf are told apart by their files
  // alone, so this does not know them.
  struct stat info {};
  const bool is_there = stat(PathOf(number).data(), &info) == 0 &&
                        FileIdentity{.device = info.st_dev, .inode = info.st_ino} == identity;
  errno = saved_errno;
  return is_there;
}

int KnownFile::Reopen() const noexcept {
  if (const int known = Number(); known >= 0) return fcntl(known, F_DUPFD_CLOEXEC, 0);
  if (!IsElsewhere()) return -1;
  const int file = open(PathOf(number).data(), O_RDWR | O_CLOEXEC);
  if (file < 0 || FileIdentity::Of(file) == identity) return file;
  close(file);
  return -1;
}

int KnownFile::Close() noexcept {
  const int known = Number();
  number = -1;
  if (known < 0) return EBADF;
  // After EINTR the file is closed all the same.
  return close(known) != 0 && errno != EINTR ? errno : 0;
}

int WriteAll(const Descriptor& file, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t written = write(file.get(), bytes.data(), bytes.size());
    if (written >= 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

}  // namespace strobe::internal
