#include "strobe/process/mapping.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <system_error>
#include <utility>

#include "../core/deleted_mark.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "mapped_file.h"

namespace strobe {
namespace {

constexpr std::size_t kReadBytes = 16 * 1024;
// Ranges of code without a file that are looked at each time: a program that generates code has
// many.
constexpr std::size_t kMaxMovedLooks = 64;

absl::string_view Absl(std::string_view text) { return {text.data(), text.size()}; }

// Takes the next word off `line`.
std::string_view TakeWord(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

// A line, of memory with any rights.
struct MappedRange {
  Mapping mapping;
  bool is_code = false;
};

// "7f00-7f10 r-xp 00001000 08:01 1234   /usr/lib/libc.so.6"
std::optional<MappedRange> ParseLine(std::string_view line) {
  Mapping mapping;
  const std::string_view range = TakeWord(line);
  const std::string_view rights = TakeWord(line);
  const std::string_view offset = TakeWord(line);
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos || rights.size() < 4) return std::nullopt;
  if (!absl::SimpleHexAtoi(Absl(range.substr(0, dash)), &mapping.start) ||
      !absl::SimpleHexAtoi(Absl(range.substr(dash + 1)), &mapping.limit) ||
      !absl::SimpleHexAtoi(Absl(offset), &mapping.file_offset) || mapping.start >= mapping.limit)
    return std::nullopt;
  TakeWord(line);  // the device
  if (!absl::SimpleAtoi(Absl(TakeWord(line)), &mapping.inode)) mapping.inode = 0;
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  mapping.path = line;
  // How the kernel writes a path with a line's end in it.
  constexpr std::string_view kLineEnd = "\\012";
  for (std::size_t at = mapping.path.find(kLineEnd); at != std::string::npos;
       at = mapping.path.find(kLineEnd, at))
    mapping.path.replace(at, kLineEnd.size(), "\n");
  return MappedRange{std::move(mapping), rights[2] == 'x'};
}

std::vector<MappedRange> ParseRanges(std::string_view maps) {
  std::vector<MappedRange> ranges;
  while (!maps.empty()) {
    const std::size_t end = std::min(maps.find('\n'), maps.size());
    if (std::optional<MappedRange> range = ParseLine(maps.substr(0, end)))
      ranges.push_back(*std::move(range));
    maps.remove_prefix(std::min(end + 1, maps.size()));
  }
  return ranges;
}

std::vector<Mapping> CodeOf(std::vector<MappedRange> ranges) {
  std::vector<Mapping> code;
  for (MappedRange& range : ranges) {
    if (range.is_code) code.push_back(std::move(range.mapping));
  }
  return code;
}

// The mappings of files next to that range, below it and above.
std::vector<Mapping> FilesBeside(const std::vector<MappedRange>& ranges, std::size_t index) {
  const auto has_file = [](const MappedRange& range) {
    return internal::IsFile(range.mapping.path);
  };
  std::vector<Mapping> beside;
  const auto at = ranges.begin() + static_cast<std::ptrdiff_t>(index);
  const auto below = std::find_if(std::make_reverse_iterator(at), ranges.rend(), has_file);
  if (below != ranges.rend()) beside.push_back(below->mapping);
  const auto above = std::find_if(at, ranges.end(), has_file);
  if (above != ranges.end()) beside.push_back(above->mapping);
  return beside;
}

void FindMoved(std::vector<MappedRange>& ranges, const std::string& process,
               const SymbolFiles& files) {
  std::size_t looks = 0;
  for (std::size_t i = 0; i < ranges.size() && looks < kMaxMovedLooks; ++i) {
    const Mapping& mapping = ranges[i].mapping;
    if (!ranges[i].is_code || internal::IsFile(mapping.path) || mapping.path.starts_with("[v"))
      continue;
    ++looks;
    std::optional<Mapping> found =
        internal::FileOfMoved(mapping, FilesBeside(ranges, i), process, files);
    if (found.has_value()) ranges[i].mapping = *std::move(found);
  }
}

}  // namespace

std::vector<Mapping> ParseMaps(std::string_view maps) { return CodeOf(ParseRanges(maps)); }

absl::Status NoProcessError(const std::string& process) {
  std::error_code error;
  if (!std::filesystem::exists("/proc/self", error)) {
    return absl::NotFoundError(
        absl::StrCat("process ", process, " cannot be seen: /proc is not mounted"));
  }
  return absl::NotFoundError(absl::StrCat("there is no process ", process));
}

absl::StatusOr<std::vector<Mapping>> ReadMaps(const std::string& process,
                                              const SymbolFiles* files) {
  const std::string directory = absl::StrCat("/proc/", process, "/");
  if (!std::ifstream(directory + "comm")) return NoProcessError(process);
  std::ifstream file(directory + "maps", std::ios::binary);
  // A read fails when the process ends meanwhile. The stream says so; an iterator of its buffer
  // would throw.
  std::string text;
  std::array<char, kReadBytes> piece;
  do {
    file.read(piece.data(), piece.size());
    text.append(piece.data(), static_cast<std::size_t>(file.gcount()));
  } while (file);
  // Without the right to them, some kernels refuse to open the file and others to read it. A
  // process that has ended, and a thread of the kernel, have no mappings.
  if (!file.is_open() || file.bad())
    return absl::PermissionDeniedError(
        absl::StrCat("the mappings of process ", process, " may not be read"));
  std::vector<MappedRange> ranges = ParseRanges(text);
  if (files != nullptr) FindMoved(ranges, process, *files);
  return CodeOf(std::move(ranges));
}

std::vector<std::string> LinksTo(const Mapping& mapping, const std::string& process) {
  const std::string wanted = internal::WithoutDeletedMark(mapping.path);
  const std::string range =
      absl::StrCat("map_files/", absl::Hex(mapping.start), "-", absl::Hex(mapping.limit));
  std::vector<std::string> links;
  for (const std::string& name : {range, std::string("exe")}) {
    std::string link = absl::StrCat("/proc/", process, "/", name);
    std::error_code error;
    const std::filesystem::path target = std::filesystem::read_symlink(link, error);
    // The process may have mapped another file since.
    if (!error && internal::WithoutDeletedMark(target.string()) == wanted)
      links.push_back(std::move(link));
  }
  return links;
}

}  // namespace strobe
