#include "record_profile.h"

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "../merge.h"
#include "../perf_threads.h"
#include "../read_profile.h"
#include "absl/strings/str_cat.h"
#include "generated_names.h"

namespace strobe::internal {
namespace {

constexpr const char* kSuffix = ".pb.gz";
constexpr std::size_t kTopRows = 10;

struct Origin {
  std::string_view program;
  std::uint64_t process = 0;
};

// Reads the name that a DirectoryExporter gives: "<program>.<process id>.<sequence>.pb.gz".
// Nothing for others, such as those of temporary files.
std::optional<Origin> OriginOf(std::string_view name) {
  if (!name.ends_with(kSuffix) || name.starts_with(".")) return std::nullopt;
  name.remove_suffix(std::string_view(kSuffix).size());
  const std::size_t sequence = name.rfind('.');
  if (sequence == std::string_view::npos || sequence == 0) return std::nullopt;
  const std::size_t process = name.rfind('.', sequence - 1);
  if (process == std::string_view::npos) return std::nullopt;
  Origin origin{.program = name.substr(0, process)};
  const char* const end = name.data() + sequence;
  const auto [last, error] = std::from_chars(name.data() + process + 1, end, origin.process);
  return error == std::errc() && last == end ? std::optional(origin) : std::nullopt;
}

absl::Status AddTo(LoadedProfile& sum, LoadedProfile added) {
  std::vector<LoadedProfile> both;
  both.push_back(std::move(sum));
  both.push_back(std::move(added));
  absl::StatusOr<LoadedProfile> merged = MergeProfiles(both);
  if (!merged.ok()) {
    sum = std::move(both[0]);
    return merged.status();
  }
  sum = *std::move(merged);
  return absl::OkStatus();
}

void LabelByProcess(LoadedProfile& loaded, std::uint64_t process) {
  const LabelSet label(
      {{std::string(PerfThreads::kProcessLabel), static_cast<std::int64_t>(process)}});
  for (LabelSet& set : loaded.profile.label_sets) set = set.Joined(label);
}

bool IsDirectory(const std::string& output) {
  std::error_code error;
  return output.ends_with("/") || std::filesystem::is_directory(output, error);
}

// A path in the current directory that no file has.
std::string FreePath(const std::string& program, std::uint64_t process) {
  for (std::uint64_t sequence = 0;; ++sequence) {
    std::string path = absl::StrCat(program, ".", process, ".", sequence, kSuffix);
    std::error_code error;
    if (!std::filesystem::exists(path, error)) return path;
  }
}

Text Top(LoadedProfile loaded, const Paper& paper) {
  Request request;
  request.rows = kTopRows;
  const absl::StatusOr<Subject> subject = MakeSubject(std::move(loaded), request);
  return subject.ok() ? TopCommand(*subject, request, paper) : subject.status();
}

}  // namespace

absl::Status CheckOutput(const RecordRequest& request) {
  if (IsDirectory(request.output)) return absl::OkStatus();
  Request written;
  written.output = request.output;
  return FormatOf(written).status();
}

void RecordedProfiles::Take(const std::string& directory) {
  std::error_code error;
  std::vector<std::filesystem::path> paths;
  for (std::filesystem::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error))
    paths.push_back(entry->path());
  for (const std::filesystem::path& path : paths) {
    const std::string name = path.filename().string();
    if (!OriginOf(name)) continue;
    if (absl::Status status = TakeFile(path.string(), name); !status.ok())
      std::fprintf(stderr, "strobe: %s\n", std::string(status.message()).c_str());
    std::filesystem::remove(path, error);
  }
}

absl::Status RecordedProfiles::TakeFile(const std::string& path, std::string_view name) {
  absl::StatusOr<LoadedProfile> loaded = ReadProfileFile(path, nullptr);
  if (!loaded.ok()) return loaded.status();
  const Origin origin = *OriginOf(name);
  // The accounts of a period say nothing of a sum.
  loaded->comments.clear();
  loaded->profile.program = std::string(origin.program);
  const auto [place, is_new] = processes_.try_emplace(origin.process);
  Process& process = place->second;
  // A program that has called exec goes on under another name.
  process.program = origin.program;
  if (!is_new) return AddTo(process.loaded, *std::move(loaded));
  process.loaded = *std::move(loaded);
  return absl::OkStatus();
}

absl::Status RecordedProfiles::WriteEach(const std::string& directory) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  for (auto& [id, process] : processes_) {
    if (absl::Status status = SymbolizeQuickly(process.loaded); !status.ok()) return status;
    const Text bytes = EncodeAs("pprof", process.loaded, {});
    if (!bytes.ok()) return bytes.status();
    const std::filesystem::path path =
        std::filesystem::path(directory) / absl::StrCat(process.program, ".", id, ".0", kSuffix);
    if (absl::Status status = WriteFile(path.string(), *bytes); !status.ok()) return status;
  }
  return absl::OkStatus();
}

absl::StatusOr<LoadedProfile> RecordedProfiles::Sum() {
  std::optional<LoadedProfile> sum;
  const bool is_one = processes_.size() == 1;
  for (auto& [id, process] : processes_) {
    if (!is_one) LabelByProcess(process.loaded, id);
    if (!sum) {
      sum = std::move(process.loaded);
    } else if (absl::Status status = AddTo(*sum, std::move(process.loaded)); !status.ok()) {
      return status;
    }
  }
  if (!sum) return absl::NotFoundError("the program left no profile");
  return *std::move(sum);
}

absl::Status RecordedProfiles::WriteSum(const std::string& path, LoadedProfile& sum) {
  if (absl::Status status = SymbolizeQuickly(sum); !status.ok()) return status;
  Request request;
  request.output = path;
  const absl::StatusOr<std::string> format = FormatOf(request);
  if (!format.ok()) return format.status();
  const Text bytes = EncodeAs(*format, sum, request);
  return bytes.ok() ? WriteFile(path, *bytes) : bytes.status();
}

absl::StatusOr<std::string> RecordedProfiles::Finish(const RecordRequest& request,
                                                     std::uint64_t root_process,
                                                     const Paper& paper) {
  if (empty()) return absl::NotFoundError("the program left no profile");
  const auto found = processes_.find(root_process);
  const auto root = found != processes_.end() ? found : processes_.begin();
  const std::string program = root->second.program;
  const std::string output =
      request.output.empty() ? FreePath(program, root->first) : request.output;
  const std::size_t count = processes_.size();
  const bool has_directory = IsDirectory(output);
  for (auto& [id, process] : processes_) NameGeneratedCode(process.loaded, id);
  if (has_directory) {
    if (absl::Status status = WriteEach(output); !status.ok()) return status;
  }
  absl::StatusOr<LoadedProfile> sum = Sum();
  if (!sum.ok()) return sum.status();
  sum->profile.program = program;
  if (!has_directory) {
    if (absl::Status status = WriteSum(output, *sum); !status.ok()) return status;
  }
  std::string text = absl::StrCat("strobe: ", output);
  if (count > 1) absl::StrAppend(&text, ", of ", count, " processes");
  absl::StrAppend(&text, "\n");
  if (!request.shows_top) return text;
  const Text top = Top(*std::move(sum), paper);
  return top.ok() ? Text(absl::StrCat(text, *top)) : top;
}

}  // namespace strobe::internal
