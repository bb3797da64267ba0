#include "generated_names.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <iterator>
#include <system_error>
#include <utility>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "strobe/core/thread_info.h"

namespace strobe::internal {
namespace {

// Takes a hexadecimal number and the space behind it off the front of `line`.
bool TakeNumber(std::string_view& line, std::uint64_t& number) {
  const char* const line_end = line.data() + line.size();
  const auto [end, error] = std::from_chars(line.data(), line_end, number, 16);
  if (error != std::errc() || end == line_end || *end != ' ') return false;
  line.remove_prefix(static_cast<std::size_t>(end - line.data()) + 1);
  return true;
}

// Nothing if another user owns the file, who could give code any name.
std::string ReadOwnFile(const std::string& path) {
  std::string text;
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  if (file < 0) return text;
  struct stat status {};
  if (fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_uid == geteuid()) {
    text.resize(std::min(static_cast<std::size_t>(status.st_size), kMaxNamesBytes));
    std::size_t done = 0;
    for (ssize_t bytes = 1; bytes > 0 && done < text.size(); done += std::max<ssize_t>(bytes, 0))
      bytes = pread(file, text.data() + done, text.size() - done, static_cast<off_t>(done));
    text.resize(done);
  }
  close(file);
  return text;
}

}  // namespace

GeneratedNames::GeneratedNames(std::string_view text) {
  while (!text.empty()) {
    std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    Address start = 0;
    std::uint64_t bytes = 0;
    if (!TakeNumber(line, start) || !TakeNumber(line, bytes) || bytes == 0 || line.empty())
      continue;
    const Address limit = start + bytes;
    if (limit < start) continue;
    // What begins before may reach into the range, and is cut; what begins in it is gone.
    auto next = ranges_.lower_bound(start);
    if (next != ranges_.begin()) {
      Range& before = std::prev(next)->second;
      before.limit = std::min(before.limit, start);
    }
    while (next != ranges_.end() && next->first < limit) next = ranges_.erase(next);
    ranges_.emplace_hint(next, start, Range{.limit = limit, .name = line});
  }
}

std::string_view GeneratedNames::NameAt(Address address) const {
  const auto next = ranges_.upper_bound(address);
  if (next == ranges_.begin()) return {};
  const Range& range = std::prev(next)->second;
  return address < range.limit ? range.name : std::string_view();
}

void NameGeneratedCode(LoadedProfile& loaded, const GeneratedNames& names) {
  Symbols& symbols = loaded.symbols;
  symbols.frames.resize(loaded.profile.frames.size());
  absl::flat_hash_map<std::string, std::uint32_t> functions;
  for (std::size_t i = 0; i < loaded.profile.frames.size(); ++i) {
    const Frame& frame = loaded.profile.frames[i];
    if (frame.module != Frame::kNoModule || frame.address == 0) continue;
    const std::string name = ValidUtf8(names.NameAt(frame.address));
    if (name.empty()) continue;
    const auto [place, is_new] =
        functions.try_emplace(name, static_cast<std::uint32_t>(symbols.functions.size()));
    if (is_new) symbols.functions.push_back({.name = name, .system_name = name});
    symbols.frames[i] = {.function = place->second};
  }
}

void NameGeneratedCode(LoadedProfile& loaded, std::uint64_t process) {
  const std::string text = ReadOwnFile(absl::StrCat("/tmp/perf-", process, ".map"));
  const GeneratedNames names(text);
  if (!names.empty()) NameGeneratedCode(loaded, names);
}

}  // namespace strobe::internal
