#include "strobe/platform/machine.h"

#if defined(__x86_64__)
#include <cpuid.h>
#endif
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "cpu_list.h"
#include "files/small_file.h"
#include "strobe/core/thread_info.h"
#include "strobe/platform/program_place.h"

namespace strobe::internal {
namespace {

// Of a control group's path.
constexpr int kMaxGroupLevels = 32;

std::string_view Stripped(std::string_view text) {
  constexpr std::string_view kSpace = " \t\n\"'";
  const std::size_t begin = text.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

// What follows `key` and, after spaces, `separator`, in the first such line of a file.
std::string_view ValueOf(std::string_view text, std::string_view key, char separator) {
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    const std::size_t place = line.find(separator);
    if (place != std::string_view::npos && Stripped(line.substr(0, place)) == key)
      return Stripped(line.substr(place + 1));
  }
  return {};
}

std::optional<std::int64_t> NumberIn(std::string_view text) {
  std::int64_t number = 0;
  const absl::string_view digits(text.data(), text.size());
  return absl::SimpleAtoi(digits, &number) ? std::optional(number) : std::nullopt;
}

// CPUs: quota over period. Nothing if there is no quota.
std::optional<double> Quotient(std::string_view quota, std::string_view period) {
  const std::optional<std::int64_t> time = NumberIn(Stripped(quota));
  const std::optional<std::int64_t> of = NumberIn(Stripped(period));
  if (!time || !of || *time <= 0 || *of <= 0) return std::nullopt;
  return static_cast<double>(*time) / static_cast<double>(*of);
}

// Of the control group whose files are in `folder`, of either version.
std::optional<double> QuotaOf(const std::string& folder) {
  const std::string max = ReadStart(folder + "/cpu.max");
  const std::size_t space = max.find(' ');
  if (space != std::string::npos) {
    const std::string_view text = max;
    return Quotient(text.substr(0, space), text.substr(space));
  }
  return Quotient(ReadStart(folder + "/cpu.cfs_quota_us"),
                  ReadStart(folder + "/cpu.cfs_period_us"));
}

// The path of the process's control group: of version 2, or of the CPU's hierarchy in version 1.
std::pair<std::string, std::string> CpuGroup(std::string_view groups) {
  std::pair<std::string, std::string> unified;
  while (!groups.empty()) {
    const std::string_view line = groups.substr(0, groups.find('\n'));
    groups.remove_prefix(std::min(groups.size(), line.size() + 1));
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string_view::npos || second == std::string_view::npos) continue;
    const std::string controllers =
        absl::StrCat(",", std::string(line.substr(first + 1, second - first - 1)), ",");
    const std::string path(line.substr(second + 1));
    if (controllers.find(",cpu,") != std::string::npos) return {"/sys/fs/cgroup/cpu", path};
    if (controllers == ",,") unified = {"/sys/fs/cgroup", path};
  }
  return unified;
}

// The least quota of the process's control group and of those around it. In a container, the path
// may be the host's, and the container's own group is the one at the top.
std::optional<double> CpuQuota(const std::string& root, std::string_view groups) {
  auto [hierarchy, path] = CpuGroup(groups);
  std::optional<double> least;
  for (int level = 0; level < kMaxGroupLevels && !hierarchy.empty(); ++level) {
    while (path.ends_with('/')) path.pop_back();
    const std::optional<double> quota = QuotaOf(absl::StrCat(root, hierarchy, path));
    if (quota) least = std::min(least.value_or(*quota), *quota);
    if (path.empty()) break;
    path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
  }
  return least;
}

// As the processor itself says it; empty if it has no name. /proc/cpuinfo says the same, but before
// Linux 5.18 who opens that waits for 10 ms.
std::string CpuModel() {
#if defined(__x86_64__)
  constexpr unsigned kFirstLeaf = 0x80000002;
  std::array<unsigned, 12> words{};  // of three leaves, four registers each
  for (unsigned i = 0; i < words.size() / 4; ++i) {
    if (__get_cpuid(kFirstLeaf + i, &words[4 * i], &words[4 * i + 1], &words[4 * i + 2],
                    &words[4 * i + 3]) == 0)
      return {};
  }
  std::array<char, sizeof(words)> name{};
  std::memcpy(name.data(), words.data(), sizeof(words));
  const std::string_view text(name.data(), strnlen(name.data(), name.size()));
  return ValidUtf8(Stripped(text));
#else
  return {};
#endif
}

std::string NameOfArchitecture() {
  utsname names{};
  return uname(&names) == 0 ? names.machine : "";
}

}  // namespace

LabelSet ReadMachine(std::uint64_t process_id, const std::string& root) {
  const std::string process = absl::StrCat(root, "/proc/", process_id);
  std::vector<Label> labels;
  const auto add_text = [&labels](const char* key, std::string_view text) {
    if (!text.empty()) labels.push_back({.key = key, .value = std::string(text)});
  };
  const auto add_number = [&labels](const char* key, std::int64_t number) {
    if (number > 0) labels.push_back({.key = key, .value = number});
  };
  const std::string status = ReadStart(process + "/status");
  const std::vector<int> cpus = ParseCpus(ValueOf(status, "Cpus_allowed_list", ':'));
  add_number("cpus", static_cast<std::int64_t>(cpus.size()));
  const std::string groups = ReadStart(process + "/cgroup");
  if (const std::optional<double> quota = CpuQuota(root, groups))
    add_text("cpu_quota", absl::StrFormat("%.6g", *quota));
  add_text("cpu_model", CpuModel());
  const std::string memory = ReadStart(root + "/proc/meminfo");
  std::string_view kib = ValueOf(memory, "MemTotal", ':');
  kib = kib.substr(0, kib.find(' '));
  constexpr std::int64_t kBytesPerKib = 1024;
  constexpr std::int64_t kMaxKib = std::int64_t{1} << 50;
  add_number("memory_bytes", std::min(NumberIn(kib).value_or(0), kMaxKib) * kBytesPerKib);
  const std::string release = ReadStart(root + "/etc/os-release");
  add_text("os", ValueOf(release, "NAME", '='));
  add_text("os_version", ValueOf(release, "VERSION_ID", '='));
  add_text("kernel", Stripped(ReadStart(root + "/proc/sys/kernel/osrelease")));
  add_text("architecture", NameOfArchitecture());
  add_text("container_id", ContainerIdIn(groups));
  add_text("process_name", Stripped(ReadStart(process + "/comm")));
  return LabelSet(std::move(labels));
}

std::int64_t ReadResidentBytes(std::uint64_t process_id) {
  // Pages: of all memory, and of the resident part.
  const std::string pages = ReadStart(absl::StrCat("/proc/", process_id, "/statm"));
  const std::size_t second = pages.find(' ');
  if (second == pages.npos) return -1;
  const std::size_t end = pages.find(' ', second + 1);
  const std::optional<std::int64_t> resident =
      NumberIn(std::string_view(pages).substr(second + 1, end - second - 1));
  return resident ? *resident * sysconf(_SC_PAGESIZE) : -1;
}

}  // namespace strobe::internal
