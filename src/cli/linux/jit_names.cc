#include "jit_names.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "descriptor.h"

namespace strobe::internal {
namespace {

// Takes the next word off `line`.
absl::string_view TakeWord(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const absl::string_view word(line.data(), end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

}  // namespace

void JitFunctions::Add(std::string_view lines) {
  while (!lines.empty() && functions_.size() < kMaxFunctions) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    Function function{};
    Address bytes = 0;
    if (!absl::SimpleHexAtoi(TakeWord(line), &function.start) ||
        !absl::SimpleHexAtoi(TakeWord(line), &bytes) || line.empty())
      continue;
    function.limit = function.start + bytes;
    function.name = line.substr(0, kMaxNameBytes);
    functions_.push_back(std::move(function));
  }
  std::ranges::stable_sort(functions_, {}, &Function::start);
}

std::string_view JitFunctions::Find(Address address) const {
  const auto after = std::ranges::upper_bound(functions_, address, {}, &Function::start);
  if (after == functions_.begin()) return {};
  const Function& function = *std::prev(after);
  return address < function.limit ? std::string_view(function.name) : std::string_view();
}

std::string_view JitNames::Find(std::uint32_t process, Address address) {
  if (lists_.size() >= kMaxProcesses && !lists_.contains(process)) lists_.clear();
  List& list = lists_[process];
  std::string_view name = list.functions.Find(address);
  if (name.empty() && ReadMore(process, list)) name = list.functions.Find(address);
  return name;
}

// Whole lines only: the process may be about to write one. False if there is nothing new.
bool JitNames::ReadMore(std::uint32_t process, List& list) {
  const std::string path = absl::StrCat("/tmp/perf-", process, ".map");
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file.is_open() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      (status.st_uid != 0 && status.st_uid != geteuid()))
    return false;
  const auto bytes = static_cast<std::uint64_t>(status.st_size);
  if (bytes <= list.read_bytes) return false;
  std::string text(
      static_cast<std::size_t>(std::min<std::uint64_t>(bytes - list.read_bytes, kMaxReadBytes)),
      '\0');
  const ssize_t count =
      pread(file.get(), text.data(), text.size(), static_cast<off_t>(list.read_bytes));
  if (count <= 0) return false;
  text.resize(static_cast<std::size_t>(count));
  text.resize(text.rfind('\n') + 1);
  list.read_bytes += text.size();
  list.functions.Add(text);
  return !text.empty();
}

}  // namespace strobe::internal
