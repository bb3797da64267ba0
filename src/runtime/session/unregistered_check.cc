#include "strobe/runtime/session/unregistered_check.h"

#include <algorithm>
#include <cstddef>

#include "absl/strings/str_cat.h"

namespace strobe::internal {
namespace {

std::int64_t SumOf(const std::vector<ProgramThread>& threads) {
  std::int64_t sum_ns = 0;
  for (const ProgramThread& thread : threads) sum_ns += thread.cpu_ns;
  return sum_ns;
}

}  // namespace

UnregisteredThreads DescribeUnregistered(
    std::vector<ProgramThread> threads, std::vector<std::uint64_t> registered,
    const std::function<std::string(std::uint64_t thread_id)>& name_of) {
  const std::int64_t all_ns = SumOf(threads);
  std::ranges::sort(registered);
  std::erase_if(threads, [&](const ProgramThread& thread) {
    return std::ranges::binary_search(registered, thread.id);
  });
  UnregisteredThreads found{.count = threads.size()};
  if (all_ns > 0) found.share = static_cast<double>(SumOf(threads)) / static_cast<double>(all_ns);
  const std::size_t named = std::min(threads.size(), UnregisteredThreads::kMaxNames);
  std::ranges::partial_sort(threads, threads.begin() + static_cast<std::ptrdiff_t>(named),
                            std::ranges::greater(), &ProgramThread::cpu_ns);
  for (std::size_t i = 0; i < named; ++i) {
    const std::string name = SanitizedThreadName(name_of(threads[i].id));
    absl::StrAppend(&found.names, i == 0 ? "" : ", ",
                    name.empty() ? absl::StrCat(threads[i].id) : name);
  }
  if (named < threads.size()) absl::StrAppend(&found.names, ", ...");
  return found;
}

}  // namespace strobe::internal
