#include "process_memory.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

#include "../files/small_file.h"
#include "absl/strings/str_cat.h"

namespace strobe::internal {

void AdvisePages(void* memory, std::uint64_t bytes, int advice) {
  const auto page = static_cast<std::uintptr_t>(sysconf(_SC_PAGESIZE));
  const auto start = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t first = (start + page - 1) / page * page;
  const std::uintptr_t limit = (start + bytes) / page * page;
  if (first < limit)
    madvise(static_cast<std::byte*>(memory) + (first - start), limit - first, advice);
}

bool IsSignalWait(std::string_view syscall_text) {
  return syscall_text.starts_with(absl::StrCat(SYS_rt_sigtimedwait, " "));
}

std::uint64_t BlockedSignalsIn(const std::string& task) {
  if (IsSignalWait(ReadStart(task + "/syscall"))) return ~std::uint64_t{0};
  const std::string text = ReadStart(task + "/status");
  constexpr std::string_view kField = "\nSigBlk:\t";
  const std::size_t at = text.find(kField);
  return at == std::string::npos ? 0
                                 : std::strtoull(text.c_str() + at + kField.size(), nullptr, 16);
}

}  // namespace strobe::internal
