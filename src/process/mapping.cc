#include "strobe/process/mapping.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <optional>
#include <system_error>
#include <utility>

#include "../core/deleted_mark.h"
#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace strobe {
namespace {

constexpr std::size_t kReadBytes = 16 * 1024;

absl::string_view Absl(std::string_view text) { return {text.data(), text.size()}; }

// Takes the next word off `line`.
std::string_view TakeWord(std::string_view& line) {
  line.remove_prefix(std::min(line.find_first_not_of(' '), line.size()));
  const std::size_t end = std::min(line.find(' '), line.size());
  const std::string_view word = line.substr(0, end);
  line.remove_prefix(end);
  return word;
}

// "7f00-7f10 r-xp 00001000 08:01 1234   /usr/lib/libc.so.6"
std::optional<Mapping> ParseLine(std::string_view line) {
  Mapping mapping;
  const std::string_view range = TakeWord(line);
  const std::string_view rights = TakeWord(line);
  const std::string_view offset = TakeWord(line);
  const std::size_t dash = range.find('-');
  if (dash == std::string_view::npos || rights.size() < 4 || rights[2] != 'x') return std::nullopt;
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
  return mapping;
}

}  // namespace

std::vector<Mapping> ParseMaps(std::string_view maps) {
  std::vector<Mapping> mappings;
  while (!maps.empty()) {
    const std::size_t end = std::min(maps.find('\n'), maps.size());
    if (std::optional<Mapping> mapping = ParseLine(maps.substr(0, end)))
      mappings.push_back(*std::move(mapping));
    maps.remove_prefix(std::min(end + 1, maps.size()));
  }
  return mappings;
}

absl::StatusOr<std::vector<Mapping>> ReadMaps(const std::string& process) {
  const std::string directory = absl::StrCat("/proc/", process, "/");
  if (!std::ifstream(directory + "comm"))
    return absl::NotFoundError(absl::StrCat("there is no process ", process));
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
  return ParseMaps(text);
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
