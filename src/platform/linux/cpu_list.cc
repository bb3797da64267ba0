#include "cpu_list.h"

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_split.h"

namespace strobe::internal {

std::vector<int> ParseCpus(std::string_view list) {
  constexpr int kMaxCpus = 1 << 13;
  std::vector<int> cpus;
  for (const absl::string_view part :
       absl::StrSplit(absl::string_view(list.data(), list.size()), ',')) {
    const std::vector<absl::string_view> ends = absl::StrSplit(part, '-');
    int first = 0;
    int last = 0;
    if (ends.size() > 2 || !absl::SimpleAtoi(ends.front(), &first) ||
        !absl::SimpleAtoi(ends.back(), &last))
      continue;
    for (int cpu = std::max(first, 0); cpu <= std::min(last, kMaxCpus - 1); ++cpu)
      cpus.push_back(cpu);
  }
  return cpus;
}

}  // namespace strobe::internal
