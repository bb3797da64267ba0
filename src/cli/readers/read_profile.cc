#include "read_profile.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "memory_limit.h"
#include "perf/perf_header.h"
#include "read_pprof.h"
#include "read_text.h"

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

bool HasPerfSample(std::string_view text) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    if (IsPerfSample(text.substr(0, end))) return true;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return false;
}

absl::StatusOr<LoadedProfile> ReadAny(ByteReader compressed) {
  Input input(Decompressed(std::move(compressed)));
  if (absl::Status status = input.Fill(kFirstBytes); !status.ok()) return status;
  const std::string_view first = input.view().substr(0, kFirstBytes);
  if (first.empty()) return absl::InvalidArgumentError("the file is empty");
  if (IsPerfData(first)) {
    return absl::InvalidArgumentError(
        "a perf.data file: strobe script reads it, and writes a profile");
  }
  if (!IsText(first)) return ReadPprof(input);
  if (first[0] == '{' || first[0] == '<') {
    return absl::InvalidArgumentError(
        "JSON and HTML are written, but not read: give the pprof file that they were made of");
  }
  return HasPerfSample(first) ? ReadPerfScript(input) : ReadFolded(input);
}

}  // namespace

absl::StatusOr<LoadedProfile> ReadProfile(ByteReader compressed, std::size_t max_memory) {
  MemoryLimit limit(max_memory);
  return limit.Within([&] {
    std::uint64_t bytes = 0;
    return ReadAny([&]() -> absl::StatusOr<std::string_view> {
      absl::StatusOr<std::string_view> more = compressed();
      if (more.ok()) limit.HasFileBytes(bytes += more->size());
      return more;
    });
  });
}

absl::StatusOr<LoadedProfile> ReadProfileFile(const std::string& path,
                                              std::function<void(std::uint64_t)> progress,
                                              std::size_t max_memory) {
  absl::StatusOr<ByteReader> reader = OpenFile(path, std::move(progress));
  if (!reader.ok()) return reader.status();
  absl::StatusOr<LoadedProfile> loaded = ReadProfile(*std::move(reader), max_memory);
  if (loaded.ok()) return loaded;
  const absl::Status& status = loaded.status();
  return absl::Status(status.code(),
                      absl::StrCat(path == "-" ? "standard input" : path, ": ", status.message()));
}

}  // namespace strobe::internal
