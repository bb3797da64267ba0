#include "strobe/platform/linux/own_files.h"

#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>

#include "call_filter.h"

namespace strobe::internal {
namespace {

constexpr int kFirstOther = STDERR_FILENO + 1;

// Where one call cannot do it: the copies of the program's files are open for a moment.
bool CopyAndCloseAll() {
  if (unshare(CLONE_FILES) != 0) return false;
  DIR* const files = opendir("/proc/thread-self/fd");
  if (files == nullptr) return true;  // the copies stay open until the thread ends
  while (const dirent* file = readdir(files)) {
    const int number = std::atoi(file->d_name);
    if (number >= kFirstOther && number != dirfd(files)) close(number);
  }
  closedir(files);
  return true;
}

bool HasOwnTable() {
#ifdef SYS_close_range
  constexpr unsigned kUnshare = 1 << 1;  // CLOSE_RANGE_UNSHARE of <linux/close_range.h>
  if (syscall(SYS_close_range, static_cast<unsigned>(kFirstOther), ~0U, kUnshare) == 0) return true;
#endif
  return CopyAndCloseAll();
}

}  // namespace

bool TakeOwnFiles() {
  if (HasCallFilter() || !HasOwnTable()) return false;
  const int nothing = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int number = 0; number < kFirstOther; ++number) {
    if (nothing < 0 || (nothing != number && dup2(nothing, number) < 0)) close(number);
  }
  if (nothing >= kFirstOther) close(nothing);
  return true;
}

}  // namespace strobe::internal
