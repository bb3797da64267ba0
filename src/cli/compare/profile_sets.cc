#include "profile_sets.h"

#include <filesystem>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "commands/command.h"

namespace strobe::internal {
namespace {

namespace fs = std::filesystem;

std::string Utf8(const fs::path& path) {
  const std::u8string text = path.generic_u8string();
  return {text.begin(), text.end()};
}

// The file's name without the end that makes it a profile; empty if it is none.
std::string WithoutSuffix(const std::string& file) {
  for (const Format& format : Formats()) {
    for (const char* const suffix : format.suffixes) {
      if (!format.is_read || suffix == nullptr || !file.ends_with(suffix)) continue;
      return file.substr(0, file.size() - std::string_view(suffix).size());
    }
  }
  return "";
}

// The profiles below `folder`, by name. What cannot be looked into is left out.
absl::StatusOr<std::map<std::string, std::string>> ProfilesBelow(const fs::path& folder) {
  std::map<std::string, std::string> found;
  std::error_code error;
  const auto options = fs::directory_options::skip_permission_denied;
  for (fs::recursive_directory_iterator entry(folder, options, error), end; !error && entry != end;
       entry.increment(error)) {
    std::error_code unknown;
    if (!entry->is_regular_file(unknown)) continue;
    const std::string name = WithoutSuffix(Utf8(entry->path().lexically_relative(folder)));
    if (name.empty()) continue;
    if (!found.emplace(name, Utf8(entry->path())).second)
      return absl::InvalidArgumentError(
          absl::StrCat(Utf8(folder), ": two profiles are called ", name));
    if (found.size() > kMaxFolderProfiles)
      return absl::InvalidArgumentError(
          absl::StrCat(Utf8(folder), ": more than ", kMaxFolderProfiles, " profiles"));
  }
  if (error) return absl::NotFoundError(absl::StrCat(Utf8(folder), ": ", error.message()));
  if (found.empty())
    return absl::NotFoundError(
        absl::StrCat(Utf8(folder), ": no file in it ends as a profile does, as in .pb.gz"));
  return found;
}

}  // namespace

absl::StatusOr<ProfileSet> FindProfiles(std::span<const std::string> runs) {
  if (runs.size() > kMaxRuns)
    return absl::InvalidArgumentError(absl::StrCat("more than ", kMaxRuns, " runs"));
  ProfileSet set;
  std::size_t folders = 0;
  for (const std::string& run : runs) {
    const fs::path path(std::u8string(run.begin(), run.end()));
    std::error_code error;
    if (!fs::is_directory(path, error)) {
      set[""].push_back(run);
      continue;
    }
    ++folders;
    const auto below = ProfilesBelow(path);
    if (!below.ok()) return below.status();
    for (const auto& [name, file] : *below) set[name].push_back(file);
  }
  if (folders > 0 && folders < runs.size())
    return absl::InvalidArgumentError("some runs are files, others are folders");
  return set;
}

}  // namespace strobe::internal
