#include "record_profile.h"

#include <charconv>
#include <cstdio>
#include <filesystem>
#include <optional>
#include <span>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "merge.h"
#include "perf_threads.h"
#include "read_profile.h"

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
  sum = merged.ok() ? *std::move(merged) : std::move(both[0]);
  return merged.status();
}

// Also the accounts of the periods, which would be as many as there were.
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

}  // namespace

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
  const auto [place, is_new] = processes_.try_emplace(origin.process);
  Process& process = place->second;
  // A program that has called exec goes on under another name.
  process.program = origin.program;
  if (!is_new) return AddTo(process.loaded, *std::move(loaded));
  process.loaded = *std::move(loaded);
  return absl::OkStatus();
}

absl::Status RecordedProfiles::WriteEach(const RecordRequest& request) {
  std::error_code error;
  std::filesystem::create_directories(request.output, error);
  for (auto& [id, process] : processes_) {
    if (absl::Status status = SymbolizeQuickly(process.loaded); !status.ok()) return status;
    const Text bytes = EncodeAs("pprof", process.loaded, {});
    if (!bytes.ok()) return bytes.status();
    const std::filesystem::path path = std::filesystem::path(request.output) /
                                       absl::StrCat(process.program, ".", id, ".0", kSuffix);
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

absl::StatusOr<std::string> RecordedProfiles::Finish(const RecordRequest& request,
                                                     std::uint64_t root_process,
                                                     const Paper& paper) {
  if (empty()) return absl::NotFoundError("the program left no profile");
  const bool has_directory = IsDirectory(request.output);
  Request written;
  written.output = request.output;
  written.rows = kTopRows;
  const auto root =
      processes_.contains(root_process) ? processes_.find(root_process) : processes_.begin();
  if (written.output.empty()) written.output = FreePath(root->second.program, root->first);
  const std::string program = root->second.program;
  const std::size_t processes = processes_.size();
  if (has_directory) {
    if (absl::Status status = WriteEach(request); !status.ok()) return status;
  }
  absl::StatusOr<LoadedProfile> sum = Sum();
  if (!sum.ok()) return sum.status();
  if (sum->profile.program.empty()) sum->profile.program = program;
  if (!has_directory) {
    if (absl::Status status = SymbolizeQuickly(*sum); !status.ok()) return status;
    const absl::StatusOr<std::string> format = FormatOf(written);
    if (!format.ok()) return format.status();
    const Text bytes = EncodeAs(*format, *sum, written);
    if (!bytes.ok()) return bytes.status();
    if (absl::Status status = WriteFile(written.output, *bytes); !status.ok()) return status;
  }
  std::string text = absl::StrCat("strobe: ", written.output);
  if (processes > 1) absl::StrAppend(&text, ", of ", processes, " processes");
  absl::StrAppend(&text, "\n");
  if (!request.shows_top) return text;
  const absl::StatusOr<Subject> subject = MakeSubject(*std::move(sum), written);
  if (!subject.ok()) return subject.status();
  const Text top = TopCommand(*subject, written, paper);
  if (!top.ok()) return top.status();
  return absl::StrCat(text, *top);
}

}  // namespace strobe::internal
