#include "jit_names.h"

#include <algorithm>
#include <fstream>
#include <iterator>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "strobe/core/thread_info.h"
#include "ui/terminal.h"

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
  while (!lines.empty()) {
    const std::size_t end = std::min(lines.find('\n'), lines.size());
    std::string_view line = lines.substr(0, end);
    lines.remove_prefix(std::min(end + 1, lines.size()));
    Address start = 0;
    Address bytes = 0;
    if (!absl::SimpleHexAtoi(TakeWord(line), &start) ||
        !absl::SimpleHexAtoi(TakeWord(line), &bytes) || line.empty() || start + bytes <= start)
      continue;
    Put(start, start + bytes, line.substr(0, kMaxNameBytes));
  }
}

// What begins before may reach into the range, and is cut; what begins in the range is gone.
void JitFunctions::Put(Address start, Address limit, std::string_view name) {
  auto next = functions_.lower_bound(start);
  if (next != functions_.begin()) {
    Function& before = std::prev(next)->second;
    before.limit = std::min(before.limit, start);
  }
  while (next != functions_.end() && next->first < limit) next = functions_.erase(next);
  if (functions_.size() < kMaxFunctions)
    functions_.emplace_hint(next, start, Function{.limit = limit, .name = std::string(name)});
}

std::string_view JitFunctions::Find(Address address) const {
  const auto after = functions_.upper_bound(address);
  if (after == functions_.begin()) return {};
  const Function& function = std::prev(after)->second;
  return address < function.limit ? std::string_view(function.name) : std::string_view();
}

std::string JitListPath(std::uint32_t process, std::string_view status) {
  constexpr std::string_view kKey = "\nNSpid:";
  std::string id = absl::StrCat(process);
  if (const std::size_t key = status.find(kKey); key != std::string_view::npos) {
    // Its id in each namespace, its own last.
    status = status.substr(key + kKey.size());
    status = status.substr(0, status.find('\n'));
    id = std::string(status.substr(status.find_last_of(" \t") + 1));
  }
  return absl::StrCat("/tmp/perf-", id, ".map");
}

std::string_view JitNames::Find(std::uint32_t process, Address address) {
  if (lists_.size() >= kMaxProcesses && !lists_.contains(process)) lists_.clear();
  const auto [place, is_new] = lists_.try_emplace(process);
  List& list = place->second;
  if (is_new) {
    std::ifstream status(absl::StrCat("/proc/", process, "/status"));
    const std::string text(std::istreambuf_iterator<char>(status), {});
    list.path = JitListPath(process, text);
  }
  while (is_new && ReadMore(process, list)) {
  }
  std::string_view name = list.functions.Find(address);
  while (name.empty() && ReadMore(process, list)) name = list.functions.Find(address);
  return name;
}

void JitNames::Name(LoadedProfile& loaded, std::uint32_t process) {
  Symbols& symbols = loaded.symbols;
  symbols.frames.resize(loaded.profile.frames.size());
  absl::flat_hash_map<std::string, std::uint32_t> numbers;
  for (std::size_t i = 0; i < loaded.profile.frames.size(); ++i) {
    const Frame& frame = loaded.profile.frames[i];
    if (frame.module != Frame::kNoModule || frame.address == 0) continue;
    const std::string name = ValidUtf8(Find(process, frame.address));
    if (name.empty()) continue;
    const auto [place, is_new] =
        numbers.try_emplace(name, static_cast<std::uint32_t>(symbols.functions.size()));
    if (is_new) symbols.functions.push_back({.name = name, .system_name = name});
    symbols.frames[i] = {.function = place->second};
  }
}

// Whole lines only: the process may be about to write one. False if there is nothing new.
bool JitNames::ReadMore(std::uint32_t process, List& list) {
  // A process that has ended has no root.
  std::string text;
  for (const std::string& root : {absl::StrCat("/proc/", process, "/root"), std::string()}) {
    if (text.empty()) text = ReadFileOf(process, root + list.path, list.read_bytes, kMaxReadBytes);
  }
  text.resize(text.rfind('\n') + 1);
  list.read_bytes += text.size();
  list.functions.Add(text);
  return !text.empty();
}

}  // namespace strobe::internal
