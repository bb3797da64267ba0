// The memory of a process, by whole pages, and what its files in /proc say of its threads.
#pragma once

#include <sys/types.h>
#include <sys/uio.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "strobe/base/page.h"
#include "strobe/base/signal_safe.h"

namespace strobe::internal {

// Copies memory of a process, kPages vectors in one call. Each vector lies in one page: if a page
// is missing, the kernel only promises to copy the vectors before it. Returns how many bytes could
// be read, from the front.
template <std::size_t kPages>
STROBE_SIGNAL_SAFE inline std::size_t ReadPages(pid_t process, std::uint64_t address,
                                                std::span<std::uint8_t> bytes) noexcept {
  std::size_t done = 0;
  while (done < bytes.size()) {
    iovec pages[kPages];
    std::size_t count = 0;
    std::size_t wanted = 0;
    for (; count < kPages && done + wanted < bytes.size(); ++count) {
      const std::uint64_t at = address + done + wanted;
      const std::size_t in_page =
          std::min<std::size_t>(kPageBytes - at % kPageBytes, bytes.size() - done - wanted);
      // NOLINTNEXTLINE(performance-no-int-to-ptr): only the kernel's
      pages[count] = {reinterpret_cast<void*>(at), in_page};
      wanted += in_page;
    }
    const iovec copy{.iov_base = bytes.data() + done, .iov_len = wanted};
    const ssize_t got = process_vm_readv(process, &copy, 1, pages, count, 0);
    if (got > 0) done += static_cast<std::size_t>(got);
    if (got != static_cast<ssize_t>(wanted)) break;
  }
  return done;
}

// Pages that the collector reads in one call.
inline constexpr std::size_t kPagesPerRead = 16;

// Gives the whole pages of this part that advice: see madvise.
void AdvisePages(void* memory, std::uint64_t bytes, int advice);

// The signals that the thread with this directory in /proc blocks, signal n in bit n - 1; all while
// it waits for signals; 0 if the system does not tell.
std::uint64_t BlockedSignalsIn(const std::string& task);
// Whether the text of a thread's file `syscall` is that of sigwait or a similar call. The kernel
// shows what such a thread waits for as not blocked.
bool IsSignalWait(std::string_view syscall_text);

}  // namespace strobe::internal
