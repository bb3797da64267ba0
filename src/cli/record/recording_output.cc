#include "recording_output.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "strobe/platform/program_place.h"
#include "ui/output_file.h"

namespace strobe::internal {
namespace {

constexpr const char* kDefaultSuffix = ".pb.gz";
constexpr std::size_t kTopRows = 10;
constexpr const char* kTimeFormat = "%Y%m%dT%H%M%SZ";

// A path below `directory` that no file has.
std::string FreePath(const std::filesystem::path& directory, const Profile& profile) {
  for (std::uint64_t sequence = 0;; ++sequence) {
    const std::filesystem::path path =
        directory /
        absl::StrCat(profile.program, ".", profile.process_id, ".", sequence, kDefaultSuffix);
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return path.string();
  }
}

// The path's patterns, filled in: see OutputOptions. InvalidArgument for others.
absl::StatusOr<std::string> FilledIn(const std::string& path, const Profile& profile) {
  std::string filled;
  for (std::size_t i = 0; i < path.size(); ++i) {
    if (path[i] != '%') {
      filled += path[i];
      continue;
    }
    const char kind = ++i < path.size() ? path[i] : '\0';
    switch (kind) {
      case 'n': absl::StrAppend(&filled, absl::StrReplaceAll(profile.program, {{"/", "_"}})); break;
      case 'p': absl::StrAppend(&filled, profile.process_id); break;
      case 't':
        filled += absl::FormatTime(kTimeFormat, absl::FromUnixNanos(profile.time_ns),
                                   absl::UTCTimeZone());
        break;
      case 'h': filled += HostName(); break;
      case '%': filled += '%'; break;
      default:
        return absl::InvalidArgumentError(absl::StrCat(
            "record: in -o ", path,
            ", % stands before n (the program), p (its process), t (the time), h (the host) or %"));
    }
  }
  return filled;
}

// OK if there can be files in that directory, which need not be there yet.
absl::Status CheckDirectory(std::filesystem::path directory) {
  std::error_code error;
  if (directory.filename().empty()) directory = directory.parent_path();
  while (!std::filesystem::exists(directory, error) && directory.has_relative_path())
    directory = directory.parent_path();
  return CheckOutput((directory / "strobe").string());
}

absl::Status WriteProfile(const std::string& path, const LoadedProfile& loaded) {
  Request request;
  request.output = path;
  const absl::StatusOr<std::string> format = FormatOf(request);
  if (!format.ok()) return format.status();
  const Text bytes = EncodeAs(*format, loaded, request);
  return bytes.ok() ? WriteFile(path, *bytes) : bytes.status();
}

Text TopRows(LoadedProfile loaded, Terminal terminal) {
  terminal.shows_output = terminal.shows_errors && std::getenv("NO_COLOR") == nullptr;
  Request request;
  request.rows = kTopRows;
  const absl::StatusOr<FilteredProfile> subject = MakeFilteredProfile(std::move(loaded), request);
  return subject.ok() ? TopCommand(*subject, request, Printer(terminal)) : subject.status();
}

}  // namespace

RecordingOutput::RecordingOutput(OutputOptions options, const Terminal& terminal)
    : options_(std::move(options)), terminal_(terminal) {}

absl::Status RecordingOutput::Check() const {
  if (has_directory()) return CheckDirectory(options_.path);
  if (options_.path.empty())
    return options_.destinations.empty() ? CheckDirectory({}) : absl::OkStatus();
  if (options_.path == "-") {
    return absl::InvalidArgumentError(
        "record: standard output is the program's: name a file by -o FILE");
  }
  Request request;
  request.output = options_.path;
  if (const absl::Status status = FormatOf(request).status(); !status.ok()) return status;
  const absl::StatusOr<std::string> path = FilledIn(options_.path, Profile());
  return path.ok() ? CheckOutput(*path) : path.status();
}

bool RecordingOutput::has_directory() const {
  std::error_code error;
  return options_.path.ends_with("/") || std::filesystem::is_directory(options_.path, error);
}

absl::Status RecordingOutput::WriteToDirectory(const LoadedProfile& loaded) const {
  std::error_code error;
  std::filesystem::create_directories(options_.path, error);
  return WriteProfile(FreePath(options_.path, loaded.profile), loaded);
}

void RecordingOutput::Print(double seconds, std::uint64_t samples, std::uint64_t lost) {
  std::string line =
      absl::StrCat("recording: ", static_cast<std::uint64_t>(seconds), " s, ", samples, " samples");
  if (lost > 0) absl::StrAppend(&line, ", ", lost, " lost");
  if (!IsTerminalTaken()) progress_.Print(line);
}

void RecordingOutput::Say(const std::string& what) {
  progress_.Clear();
  std::fprintf(stderr, "strobe: %s\n", what.c_str());
}

int RecordingOutput::Fail(const std::string& what, int status) {
  Say(what);
  return status;
}

bool RecordingOutput::Failed(const absl::Status& status) {
  Fail(std::string(status.message()));
  return false;
}

bool RecordingOutput::Deliver(absl::StatusOr<LoadedProfile> loaded, std::size_t processes) {
  progress_.Clear();
  if (!loaded.ok()) return Failed(loaded.status());
  const bool is_whole = Write(*loaded, processes);
  if (!options_.shows_top) return is_whole;
  const std::vector<std::string> comments = loaded->comments;
  const Text top = TopRows(*std::move(loaded), terminal_);
  if (!top.ok()) return Failed(top.status());
  std::fputs(top->c_str(), stderr);
  for (const std::string& comment : comments) std::fprintf(stderr, "%s\n", comment.c_str());
  return is_whole;
}

std::size_t RecordingOutput::Send(const LoadedProfile& loaded) {
  std::size_t sent = 0;
  for (const Destination& destination : options_.destinations) {
    const absl::StatusOr<std::string> place = SendProfile(loaded, destination);
    if (!place.ok()) {
      Fail(std::string(place.status().message()));  // names the backend
      continue;
    }
    std::fprintf(stderr, "strobe: sent to %s\n", place->c_str());
    ++sent;
  }
  return sent;
}

bool RecordingOutput::Write(const LoadedProfile& loaded, std::size_t processes) {
  const std::size_t servers = options_.destinations.size();
  const bool is_sent = Send(loaded) == servers;
  if (options_.path.empty() && servers > 0 && is_sent) return true;
  absl::StatusOr<std::string> path = options_.path;
  if (options_.path.empty()) {
    path = FreePath({}, loaded.profile);
  } else if (!has_directory()) {
    path = FilledIn(options_.path, loaded.profile);
    if (!path.ok()) return Failed(path.status());
  }
  if (!has_directory()) {
    if (const absl::Status status = WriteProfile(*path, loaded); !status.ok())
      return Failed(status);
  }
  const std::string others =
      processes > 1 ? absl::StrCat(", of ", processes, " processes") : std::string();
  std::fprintf(stderr, "strobe: %s%s\n", path->c_str(), others.c_str());
  return is_sent;
}

}  // namespace strobe::internal
