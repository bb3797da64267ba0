#include "jit_names.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "jit/generated_function.h"
#include "jit/jit_dump.h"
#include "perf/proc_files.h"
#include "ui/terminal.h"

namespace strobe::internal {
namespace {

// In nanoseconds since 1970; 0 for a file that is not there.
std::int64_t ChangedAtNs(const std::filesystem::path& path) {
  std::error_code error;
  const auto time = std::filesystem::last_write_time(path, error);
  if (error) return 0;
  return std::chrono::nanoseconds(std::chrono::file_clock::to_sys(time).time_since_epoch()).count();
}

// Takes the next word off `line`.
absl::string_view TakeWord(std::string_view& line) {
  const std::size_t end = std::min(line.find(' '), line.size());
  const absl::string_view word(line.data(), end);
  line.remove_prefix(std::min(end + 1, line.size()));
  return word;
}

// True for a file of another process, which had the same id before the recording.
bool IsOlder(const std::filesystem::path& path, std::int64_t begin_ns) {
  const std::int64_t changed_ns = ChangedAtNs(path);
  return changed_ns != 0 && changed_ns < begin_ns;
}

// Where compilers put their dumps: node into the current directory, .NET into /tmp, and those that
// link perf's own library into a directory of the user's.
JitDump DumpOf(std::uint32_t process, std::int64_t begin_ns) {
  constexpr int kMaxDirectories = 1000;
  std::vector<std::filesystem::path> directories{".", "/tmp"};
  if (const char* const home = std::getenv("HOME"); home != nullptr) {
    std::error_code error;
    int count = 0;
    for (std::filesystem::directory_iterator entry(absl::StrCat(home, "/.debug/jit"), error), end;
         !error && entry != end && count < kMaxDirectories; entry.increment(error), ++count)
      directories.push_back(entry->path());
  }
  JitDump dump;
  for (const std::filesystem::path& directory : directories) {
    const std::filesystem::path path = directory / absl::StrCat("jit-", process, ".dump");
    if (IsOlder(path, begin_ns)) continue;
    const std::unique_ptr<ByteSource> file = OpenFileOf(process, path.string());
    if (file == nullptr) continue;
    dump.Read(*file);
    break;
  }
  return dump;
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

std::string JitListPath(std::uint32_t process, std::string_view ids) {
  const std::string_view own = ids.substr(ids.find_last_of('\t') + 1);
  return absl::StrCat("/tmp/perf-", own.empty() ? absl::StrCat(process) : std::string(own), ".map");
}

std::string_view JitNames::Find(std::uint32_t process, Address address) {
  if (lists_.size() >= kMaxProcesses && !lists_.contains(process)) {
    lists_.clear();
    open_files_ = 0;
  }
  const auto [place, is_new] = lists_.try_emplace(process);
  List& list = place->second;
  if (is_new) list.path = JitListPath(process, StatusValue(process, "NSpid"));
  while (is_new && ReadMore(process, list)) {
  }
  std::string_view name = list.functions.Find(address);
  while (name.empty() && ReadMore(process, list)) name = list.functions.Find(address);
  return name;
}

void JitNames::Name(LoadedProfile& loaded, std::uint32_t process, std::int64_t begin_ns) {
  Symbols& symbols = loaded.symbols;
  std::optional<JitDump> dump;
  const bool has_list = !IsOlder(JitListPath(process, {}), begin_ns);
  symbols.frames.resize(loaded.profile.frames.size());
  absl::flat_hash_map<std::string, std::uint32_t> numbers;
  for (std::size_t i = 0; i < loaded.profile.frames.size(); ++i) {
    const Frame& frame = loaded.profile.frames[i];
    if (frame.module != Frame::kNoModule || frame.address == 0) continue;
    if (!dump) dump = DumpOf(process, begin_ns);
    const std::string_view listed = has_list ? Find(process, frame.address) : std::string_view();
    const std::string name(dump->Find(frame.address, {}).value_or(listed));
    if (name.empty()) continue;
    const auto [place, is_new] =
        numbers.try_emplace(name, static_cast<std::uint32_t>(symbols.functions.size()));
    if (is_new) symbols.functions.push_back(GeneratedFunction(name));
    symbols.frames[i] = {.function = place->second};
  }
}

std::unique_ptr<ByteSource> JitNames::Open(std::uint32_t process, const std::string& path) {
  std::unique_ptr<ByteSource> file =
      OpenFileOf(process, absl::StrCat("/proc/", process, "/root", path));
  // A process that has ended has no root; one that has another id in a container had another /tmp.
  if (file == nullptr && path == JitListPath(process, {})) file = OpenFileOf(process, path);
  return file;
}

// Whole lines only: the process may be about to write one. False if there is nothing new.
bool JitNames::ReadMore(std::uint32_t process, List& list) {
  std::unique_ptr<ByteSource> opened;
  if (list.file == nullptr) opened = Open(process, list.path);
  if (opened != nullptr && open_files_ < kMaxOpenFiles) {
    ++open_files_;
    list.file = std::move(opened);
  }
  const ByteSource* const file = list.file != nullptr ? list.file.get() : opened.get();
  if (file == nullptr) return false;
  const std::uint64_t size = file->size();
  if (size < list.read_bytes) {  // the process has begun it anew, as after an exec
    list.functions = {};
    list.read_bytes = 0;
  }
  if (size <= list.read_bytes) return false;
  std::string text(std::min<std::uint64_t>(size - list.read_bytes, kMaxReadBytes), '\0');
  if (!file->ReadAt(list.read_bytes, std::as_writable_bytes(std::span(text)))) return false;
  text.resize(text.rfind('\n') + 1);
  list.read_bytes += text.size();
  list.functions.Add(text);
  return !text.empty();
}

}  // namespace strobe::internal
