#include "proc_files.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "strobe/platform/program_place.h"

namespace strobe::internal {

std::vector<std::uint32_t> IdsIn(const std::string& directory) {
  std::vector<std::uint32_t> ids;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    std::uint32_t id = 0;
    if (absl::SimpleAtoi(entry->path().filename().string(), &id)) ids.push_back(id);
  }
  return ids;
}

std::string StatusValue(std::uint32_t id, std::string_view key) {
  std::ifstream file(absl::StrCat("/proc/", id, "/status"));
  const std::string begin = std::string(key) + ":\t";
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(begin)) return line.substr(begin.size());
  }
  return {};
}

std::uint32_t StatusNumber(std::uint32_t id, std::string_view key) {
  std::uint32_t number = 0;
  return absl::SimpleAtoi(StatusValue(id, key), &number) ? number : 0;
}

std::string WholeProcessName(std::uint32_t process, std::string_view comm) {
  const std::string name(comm);
  if (comm.size() < kMaxCommBytes) return name;
  std::ifstream file(absl::StrCat("/proc/", process, "/cmdline"), std::ios::binary);
  std::string argument;
  std::getline(file, argument, '\0');
  const std::string whole = argument.substr(argument.find_last_of('/') + 1);
  return whole.starts_with(name) ? whole : name;
}

std::optional<std::string> ContainerOf(std::uint32_t process) {
  std::ifstream file(absl::StrCat("/proc/", process, "/cgroup"), std::ios::binary);
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return text.empty() ? std::nullopt : std::optional(ContainerIdIn(text));
}

}  // namespace strobe::internal
