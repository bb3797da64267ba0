#include "proc_files.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <system_error>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "strobe/platform/native.h"
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

namespace {

// In this namespace, and then in each one below it.
std::vector<std::string> IdsByNamespace(std::uint32_t id) {
  return absl::StrSplit(StatusValue(id, "NSpid"), '\t');
}

// Of `ids`, the one that is called `id` in that namespace.
std::uint32_t Called(std::uint32_t id, std::size_t name_space,
                     const std::vector<std::uint32_t>& ids) {
  const std::string name = absl::StrCat(id);
  const auto found = std::ranges::find_if(ids, [&](std::uint32_t candidate) {
    const std::vector<std::string> names = IdsByNamespace(candidate);
    return names.size() > name_space && names[name_space] == name;
  });
  return found == ids.end() ? 0 : *found;
}

}  // namespace

bool IsProcOwn() {
  std::error_code error;
  const std::string own = std::filesystem::read_symlink("/proc/self", error).string();
  std::uint32_t id = 0;
  return absl::SimpleAtoi(own, &id) && id == NativePlatform::ProcessId();
}

std::uint32_t ThreadCalled(std::uint32_t process, std::uint32_t id) {
  const std::string threads = absl::StrCat("/proc/", process, "/task");
  const std::size_t name_space = IdsByNamespace(process).size() - 1;
  if (name_space > 0) return Called(id, name_space, IdsIn(threads));
  std::error_code error;
  return std::filesystem::exists(absl::StrCat(threads, "/", id), error) ? id : 0;
}

std::uint32_t ChildCalled(std::uint32_t process, std::uint32_t id) {
  const std::size_t name_space = IdsByNamespace(process).size() - 1;
  if (name_space == 0) return StatusNumber(id, "PPid") == process ? id : 0;
  std::vector<std::uint32_t> children = IdsIn("/proc");
  std::erase_if(children,
                [=](std::uint32_t other) { return StatusNumber(other, "PPid") != process; });
  return Called(id, name_space, children);
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
