#include "proc_files.h"

#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

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

}  // namespace strobe::internal
