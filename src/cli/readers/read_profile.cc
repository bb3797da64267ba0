#include "read_profile.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "memory_limit.h"
#include "perf/perf_header.h"
#include "read_gperftools.h"
#include "read_perf_script.h"
#include "read_pprof.h"
#include "text_frames.h"

namespace strobe::internal {
namespace {

// How far the format is looked for.
constexpr std::size_t kFirstBytes = std::size_t{4} << 10;

// A message of pprof has a number below 32 in its first bytes: a length, or a field's tag.
bool IsText(std::string_view bytes) {
  return std::ranges::none_of(bytes, [](char c) {
    return static_cast<unsigned char>(c) < 0x20 && c != '\n' && c != '\r' && c != '\t';
  });
}

// The first line that is no comment, or its begin: perf's comments may be long. Empty if there is
// none in the first kMaxLineBytes.
absl::StatusOr<std::string_view> FirstLine(Input& input) {
  std::size_t begin = 0;
  for (std::size_t wanted = kFirstBytes; begin < kMaxLineBytes && wanted <= 2 * kMaxLineBytes;) {
    if (absl::Status status = input.Fill(wanted); !status.ok()) return status;
    const std::string_view text = input.view().substr(std::min(begin, input.view().size()));
    const std::size_t end = text.find('\n');
    const std::string_view line = text.substr(0, end);
    const std::size_t first = line.find_first_not_of(" \t\r");
    if (first != std::string_view::npos && line[first] != '#') return line;
    if (end != std::string_view::npos) {
      begin += end + 1;
    } else if (input.view().size() < wanted) {
      break;
    } else {
      wanted *= 2;
    }
  }
  return std::string_view();
}

// JSON begins with a bracket and a key. A function may be called "{main}", as in PHP, and
// "<module>", as in Python: a line of folded stacks is none of HTML.
bool IsJsonOrHtml(std::string_view first) {
  const std::string_view line = first.substr(0, first.find_first_of("\r\n"));
  if (first[0] == '<') return !IsFoldedStack(line);
  const std::size_t next = first.find_first_not_of(" \t\r\n", 1);
  return first[0] == '{' &&
         (next == std::string_view::npos || first[next] == '"' || first[next] == '}');
}

absl::StatusOr<LoadedProfile> ReadText(Input& input, const FoldedUnit& unit) {
  const absl::StatusOr<std::string_view> line = FirstLine(input);
  if (!line.ok()) return line.status();
  if (IsHeapText(*line)) return ReadHeapText(input);
  if (const std::string_view name = NameOfLegacyText(*line); !name.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(std::string(name), ", which is not read: `pprof -proto` makes pprof of it"));
  }
  return IsPerfScript(*line) ? ReadPerfScript(input) : ReadFolded(input, unit);
}

absl::StatusOr<LoadedProfile> ReadAny(ByteReader compressed, const FoldedUnit& unit) {
  Input input(Decompressed(std::move(compressed)));
  if (absl::Status status = input.Fill(kFirstBytes); !status.ok()) return status;
  const std::string_view first = input.view().substr(0, kFirstBytes);
  if (first.empty()) return absl::InvalidArgumentError("the file is empty");
  if (IsPerfData(first)) {
    return absl::InvalidArgumentError(
        "a perf.data file: strobe script reads it, and writes a profile");
  }
  if (IsGperftoolsCpu(first)) return ReadGperftoolsCpu(input);
  if (!IsText(first)) return ReadPprof(input);
  if (IsJsonOrHtml(first)) {
    return absl::InvalidArgumentError(
        "JSON and HTML are written, but not read: give the pprof file that they were made of");
  }
  return ReadText(input, unit);
}

}  // namespace

absl::StatusOr<LoadedProfile> ReadProfile(ByteReader compressed, std::size_t max_memory,
                                          const FoldedUnit& unit) {
  MemoryLimit limit(max_memory);
  return limit.Within([&] {
    std::uint64_t bytes = 0;
    return ReadAny(
        [&]() -> absl::StatusOr<std::string_view> {
          absl::StatusOr<std::string_view> more = compressed();
          if (more.ok()) limit.HasFileBytes(bytes += more->size());
          return more;
        },
        unit);
  });
}

absl::StatusOr<LoadedProfile> ReadProfileFile(const std::string& path,
                                              std::function<void(std::uint64_t)> progress,
                                              std::size_t max_memory, const FoldedUnit& unit) {
  absl::StatusOr<ByteReader> reader = OpenFile(path, std::move(progress));
  if (!reader.ok()) return reader.status();
  absl::StatusOr<LoadedProfile> loaded = ReadProfile(*std::move(reader), max_memory, unit);
  if (loaded.ok()) return loaded;
  const absl::Status& status = loaded.status();
  return absl::Status(status.code(),
                      absl::StrCat(path == "-" ? "standard input" : path, ": ", status.message()));
}

}  // namespace strobe::internal
