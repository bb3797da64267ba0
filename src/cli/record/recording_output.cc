#include "recording_output.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "strobe/core/options.h"
#include "strobe/encode/machine_tags.h"
#include "strobe/platform/machine.h"
#include "strobe/platform/native.h"
#include "strobe/platform/program_place.h"
#include "ui/output_file.h"

namespace strobe::internal {
namespace {

constexpr const char* kDefaultSuffix = ".pb.gz";
constexpr std::size_t kTopRows = 10;
constexpr const char* kProbe = ".strobe-output";  // no other file's name
constexpr const char* kTimeFormat = "%Y%m%dT%H%M%SZ";

// The path's patterns, filled in: see OutputOptions; behind the time comes `mark`. InvalidArgument
// for others.
absl::StatusOr<std::string> FilledIn(const std::string& path, const Profile& profile,
                                     const std::string& mark = {}) {
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
                                   absl::UTCTimeZone()) +
                  mark;
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
  return CheckOutput((directory / kProbe).string());
}

absl::Status WriteProfile(const std::string& path, const LoadedProfile& loaded) {
  Request request;
  request.output = path;
  const absl::StatusOr<std::string> format = FormatOf(request);
  if (!format.ok()) return format.status();
  const Text bytes = EncodeAs(*format, loaded, request);
  return bytes.ok() ? WriteFile(path, *bytes) : bytes.status();
}

// Of processes that run elsewhere, or on part of the machine, this one's own say nothing. Empty if
// the environment wants none.
LabelSet TagsOfMachine() {
  ProfilerOptions options;
  ApplyEnvironment(options, &NativePlatform::EnvironmentVariable, [](const std::string&) {});
  if (!*options.exporter.machine_tags) return {};
  std::vector<Label> labels;
  VisitMachine(ReadMachine(NativePlatform::ProcessId()), MachinePart::kShared,
               [&](const MachineTag&, const Label& label) { labels.push_back(label); });
  return LabelSet(std::move(labels));
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
    : options_(std::move(options)), terminal_(terminal), machine_(TagsOfMachine()) {}

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

bool MayHavePeriods(const OutputOptions& output) {
  const bool has_time =
      absl::StrReplaceAll(output.path, {{"%%", ""}}).find("%t") != std::string::npos;
  return output.path.empty() || has_time || NamesDirectory(output.path);
}

bool NamesDirectory(const std::string& path) {
  std::error_code error;
  return path.ends_with("/") || std::filesystem::is_directory(path, error);
}

absl::Status RecordingOutput::WriteToDirectory(const LoadedProfile& loaded) {
  std::error_code error;
  std::filesystem::create_directories(options_.path, error);
  return WriteNew(FreePath(options_.path, loaded.profile), loaded);
}

// A path below `directory` that no file has, and that this recording has not used.
std::string RecordingOutput::FreePath(const std::string& directory, const Profile& profile) {
  const std::string begin =
      (std::filesystem::path(directory) / absl::StrCat(profile.program, ".", profile.process_id))
          .string();
  for (std::uint64_t& sequence = next_[begin];;) {
    const std::string path = absl::StrCat(begin, ".", sequence++, kDefaultSuffix);
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return path;
  }
}

// Profiles of one recording that began in the same second have a number behind the time.
absl::StatusOr<std::string> RecordingOutput::PathFor(const Profile& profile) {
  absl::StatusOr<std::string> path = FilledIn(options_.path, profile);
  for (int i = 1;
       path.ok() && MayHavePeriods(options_) && std::ranges::find(files_, *path) != files_.end();
       ++i)
    path = FilledIn(options_.path, profile, absl::StrCat("-", i));
  return path;
}

absl::Status RecordingOutput::WriteNew(const std::string& path, const LoadedProfile& loaded) {
  absl::Status status = WriteProfile(path, loaded);
  if (!status.ok()) return status;
  files_.push_back(path);
  ++files_of_delivery_;
  return status;
}

void RecordingOutput::RemoveOld() {
  for (; files_.size() > std::max(kMostFiles, files_of_delivery_); files_.pop_front()) {
    std::error_code error;
    std::filesystem::remove(files_.front(), error);
  }
  files_of_delivery_ = 0;
}

void RecordingOutput::Print(double seconds, std::uint64_t samples, std::uint64_t lost) {
  std::string line =
      absl::StrCat("recording: ", static_cast<std::uint64_t>(seconds), " s, ", samples, " samples");
  if (lost > 0) absl::StrAppend(&line, ", ", lost, " lost");
  const std::lock_guard lock(mutex_);
  if (!IsTerminalTaken()) progress_.Print(line);
}

void RecordingOutput::Say(const std::string& what) {
  const std::lock_guard lock(mutex_);
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
  if (!loaded.ok()) return Failed(loaded.status());
  loaded->profile.machine = machine_;
  const bool is_whole = Write(*loaded, processes);
  RemoveOld();
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
    Say("sent to " + *place);
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
    path = PathFor(loaded.profile);
    if (!path.ok()) return Failed(path.status());
  }
  if (!has_directory()) {
    if (const absl::Status status = WriteNew(*path, loaded); !status.ok()) return Failed(status);
  }
  const std::string others =
      processes > 1 ? absl::StrCat(", of ", processes, " processes") : std::string();
  Say(*path + others);
  return is_sent;
}

}  // namespace strobe::internal
