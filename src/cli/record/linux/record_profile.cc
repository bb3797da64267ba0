#include "record_profile.h"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "perf/jit_names.h"
#include "perf/perf_threads.h"
#include "profile/columns.h"
#include "profile/costs.h"
#include "profile/merge.h"
#include "profile/short_processes.h"
#include "readers/read_profile.h"

namespace strobe::internal {
namespace {

constexpr const char* kSuffix = ".pb.gz";

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
  // A process whose allocator cannot be seen has no columns of allocations.
  const std::vector<ValueType>& own = sum.profile.value_types;
  const std::vector<ValueType>& others = added.profile.value_types;
  const std::vector<ValueType> types =
      own.size() < others.size() ? AllTypes(others, own) : AllTypes(own, others);
  SetColumns(added, types);
  SetColumns(sum, types);
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
  const LabelSet labels(
      {{std::string(PerfThreads::kProcessLabel), static_cast<std::int64_t>(process)},
       {std::string(PerfThreads::kProcessNameLabel), std::string(loaded.profile.program)}});
  for (LabelSet& set : loaded.profile.label_sets) set = set.Joined(labels);
}

bool EndsLater(const Profile& profile, const Profile& other) {
  return profile.time_ns + profile.duration_ns > other.time_ns + other.duration_ns;
}

// Of that value type, if there is one.
std::int64_t SumOf(const Profile& profile, std::string_view type) {
  const auto column = std::ranges::find(profile.value_types, type, &ValueType::type);
  if (column == profile.value_types.end()) return 0;
  return ColumnSum(profile, static_cast<std::size_t>(column - profile.value_types.begin()));
}

absl::Status NoProfileError(const std::string& refusal) {
  return absl::NotFoundError(absl::StrCat(
      "the program left no profile: ",
      !refusal.empty() ? refusal
                       : "--worker keeps that of a program that is killed, and --perf needs "
                         "nothing of the program"));
}

}  // namespace

bool RecordedProfiles::Take(const std::string& directory) {
  std::error_code listed;
  std::vector<std::filesystem::path> paths;
  for (std::filesystem::directory_iterator entry(directory, listed), end; !listed && entry != end;
       entry.increment(listed))
    paths.push_back(entry->path());
  bool has_all = !listed;
  for (const std::filesystem::path& path : paths) {
    const std::string name = path.filename().string();
    if (!OriginOf(name)) continue;
    const absl::Status status = TakeFile(path.string(), name);
    // Too many files are open, here or in the system.
    if (absl::IsPermissionDenied(status) && access(path.c_str(), R_OK) == 0) {
      has_all = false;
      continue;
    }
    if (!status.ok()) output_.Fail(std::string(status.message()));
    std::error_code ignored;
    std::filesystem::remove(path, ignored);
  }
  return has_all;
}

void RecordedProfiles::SetOutside(std::optional<LoadedProfile> loaded) {
  outside_ = std::move(loaded);
  if (outside_) LimitMoments(outside_->profile);
}

std::set<std::uint64_t> RecordedProfiles::Ids() const {
  std::set<std::uint64_t> ids;
  for (const auto& [id, loaded] : processes_) ids.insert(id);
  if (!outside_) return ids;
  for (const LabelSet& set : outside_->profile.label_sets) {
    const std::int64_t id = set.Number(PerfThreads::kProcessLabel);
    if (id != 0) ids.insert(static_cast<std::uint64_t>(id));
  }
  return ids;
}

absl::Status RecordedProfiles::WriteNamed(LoadedProfile& loaded) {
  loaded.profile.machine = output_.machine();
  absl::Status status = SymbolizeQuickly(loaded);
  return status.ok() ? output_.WriteToDirectory(loaded) : status;
}

void RecordedProfiles::LimitMoments(Profile& profile) {
  const std::size_t bytes = profile.moments.size() * sizeof(ProfileMoment) +
                            profile.moment_values.size() * sizeof(std::int64_t);
  if (bytes <= max_moment_bytes_ - moment_bytes_) {
    moment_bytes_ += bytes;
    return;
  }
  moments_left_out_ += profile.moments.size();
  profile.moments.clear();
  profile.moment_values.clear();
}

bool RecordedProfiles::HasUntil(std::uint64_t process, std::int64_t unix_ns) const {
  const auto place = until_ns_.find(process);
  return place != until_ns_.end() && place->second >= unix_ns;
}

absl::Status RecordedProfiles::TakeFile(const std::string& path, std::string_view name) {
  absl::StatusOr<LoadedProfile> loaded = ReadProfileFile(path, nullptr);
  if (!loaded.ok()) return loaded.status();
  const Origin origin = *OriginOf(name);
  // The accounts of a period say nothing of a sum.
  loaded->comments.clear();
  std::int64_t& until_ns = until_ns_[origin.process];
  until_ns = std::max(until_ns, loaded->profile.time_ns + loaded->profile.duration_ns);
  samples_ += static_cast<std::uint64_t>(SumOf(loaded->profile, "samples"));
  LimitMoments(loaded->profile);
  const auto [place, is_new] = processes_.try_emplace(origin.process);
  LoadedProfile& process = place->second;
  if (is_new) {
    process = *std::move(loaded);
  } else {
    ClearLevels(EndsLater(process.profile, loaded->profile) ? loaded->profile : process.profile);
    if (absl::Status status = AddTo(process, *std::move(loaded)); !status.ok()) return status;
  }
  // A program that has called exec goes on under another name.
  process.profile.program = std::string(origin.program);
  process.profile.process_id = origin.process;
  return absl::OkStatus();
}

absl::StatusOr<LoadedProfile> RecordedProfiles::Sum(std::uint64_t root_process) {
  if (empty()) return NoProfileError(refused_ > 0 ? refusal_ : "");
  const bool is_one = Ids().size() == 1;
  const bool has_directory = output_.has_directory();
  if (outside_ && is_one) PerfThreads::RemoveOnlyProcess(outside_->profile.label_sets);
  if (outside_ && has_directory) {
    if (absl::Status status = WriteNamed(*outside_); !status.ok()) return status;
  }
  const auto root = processes_.find(root_process);
  const auto first = root != processes_.end() ? root : processes_.begin();
  JitNames jit_names;
  std::vector<LoadedProfile*> all;
  for (auto& [id, loaded] : processes_) {
    jit_names.Name(loaded, static_cast<std::uint32_t>(id), begin_ns_);
    if (has_directory) {
      if (absl::Status status = WriteNamed(loaded); !status.ok()) return status;
    }
    if (!is_one) LabelByProcess(loaded, id);
    all.push_back(&loaded);
  }
  PoolShortProcesses(all);
  // The command gives the sum its name.
  const bool is_outside =
      outside_ && (first == processes_.end() || outside_->profile.process_id == root_process);
  LoadedProfile sum = std::move(is_outside ? *outside_ : first->second);
  const std::string program = sum.profile.program;
  const std::uint64_t process_id = sum.profile.process_id;
  for (auto process = processes_.begin(); process != processes_.end(); ++process) {
    if (!is_outside && process == first) continue;
    if (absl::Status status = AddTo(sum, std::move(process->second)); !status.ok()) return status;
  }
  if (outside_ && !is_outside) {
    if (absl::Status status = AddTo(sum, *std::move(outside_)); !status.ok()) return status;
  }
  sum.profile.program = program;
  sum.profile.process_id = process_id;
  if (moments_left_out_ > 0) {
    sum.comments.push_back(absl::StrCat("times beyond the memory limit: of ", moments_left_out_,
                                        " samples the times are not kept"));
  }
  if (!has_directory) {
    if (absl::Status status = SymbolizeQuickly(sum); !status.ok()) return status;
  }
  return sum;
}

bool RecordedProfiles::Finish(std::uint64_t root_process) {
  const std::size_t count = Ids().size();
  const bool has_outside = outside_.has_value();
  absl::StatusOr<LoadedProfile> sum = Sum(root_process);
  if (sum.ok() && has_outside && !asked_.empty()) SayCpuTimeAlone(*sum);
  if (sum.ok()) SayMissing(*sum, count);
  return output_.Deliver(std::move(sum), count);
}

std::int64_t RecordedProfiles::MissingNs(std::int64_t used_ns, std::int64_t recorded_ns,
                                         std::size_t processes) {
  // A process takes some milliseconds to start and to end with a profile; a busy machine, more.
  constexpr std::int64_t kOfEachNs = 20'000'000;
  constexpr std::int64_t kLeastNs = 100'000'000;
  const std::int64_t missing_ns = used_ns - recorded_ns;
  const std::int64_t least_ns =
      std::max(used_ns / 4, kLeastNs + kOfEachNs * static_cast<std::int64_t>(processes));
  return missing_ns > least_ns ? missing_ns : 0;
}

void RecordedProfiles::SayCpuTimeAlone(LoadedProfile& sum) const {
  const std::string what = absl::StrCat(
      "of programs that load no library, the profile has the CPU time alone, and not "
      "what is asked for by ",
      asked_);
  sum.comments.push_back(what);
  output_.Say(what);
}

std::string RecordedProfiles::RefusalText() const {
  if (refused_ == 0) return refusal_;
  return absl::StrCat("programs that load no library and are not recorded: ", refused_, "; ",
                      refusal_);
}

void RecordedProfiles::SayMissing(LoadedProfile& sum, std::size_t processes) const {
  const std::vector<ValueType>& types = sum.profile.value_types;
  const bool has_cpu_time = std::ranges::find(types, "cpu", &ValueType::type) != types.end();
  const std::int64_t missing_ns = MissingNs(used_ns_, SumOf(sum.profile, "cpu"), processes);
  if (!has_cpu_time || missing_ns == 0) {
    if (refused_ == 0) return;
    sum.comments.push_back(RefusalText());
    return output_.Say(RefusalText());
  }
  const std::string what = absl::StrFormat(
      "%.3f s of %.3f s CPU time are not in the profile, for example of programs that load no "
      "library (statically linked, with other rights, another environment or a filter of system "
      "calls), of what was killed or replaced by exec, of children that end at once",
      1e-9 * static_cast<double>(missing_ns), 1e-9 * static_cast<double>(used_ns_));
  sum.comments.push_back(what);
  output_.Say(absl::StrCat(what, "; ", refusal_.empty() ? "--perf records them" : RefusalText()));
}

}  // namespace strobe::internal
