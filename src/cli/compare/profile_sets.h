// Which profiles belong together: each side of a comparison has one run or several, and each run
// one profile or a folder of them.
#pragma once

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace strobe::internal {

// The most files in a folder of profiles, and the most runs of a side.
inline constexpr std::size_t kMaxFolderProfiles = 10'000;
inline constexpr std::size_t kMaxRuns = 100;

// The paths of profiles by their names: several runs of a benchmark have one name.
using ProfileSet = std::map<std::string, std::vector<std::string>>;

// The profiles of all `runs`. Of a folder, those in it and below it that end as a file does that
// the command reads (see Format::is_read), each named by its path in the folder without that end.
// A file has no name. InvalidArgument if there are files and folders, or too many of either;
// NotFound if there is no such file, or a folder has no profile.
absl::StatusOr<ProfileSet> FindProfiles(std::span<const std::string> runs);

}  // namespace strobe::internal
