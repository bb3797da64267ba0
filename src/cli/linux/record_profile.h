// RecordedProfiles: the profiles of the processes of one recording, and their sum.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "../loaded_profile.h"
#include "../record.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace strobe::internal {

// InvalidArgument if the end of the output's name is that of no format.
absl::Status CheckOutput(const RecordRequest& request);

class RecordedProfiles {
 public:
  // Reads the profiles that have come into `directory` since the last call, and removes their
  // files. The profiles of a process are added up. A file that does not read as a profile is
  // skipped, and named on standard error.
  void Take(const std::string& directory);

  [[nodiscard]] bool empty() const { return processes_.empty(); }
  [[nodiscard]] std::size_t size() const { return processes_.size(); }

  // Writes what has been taken where `request` says, and returns the text for people: the files,
  // and the first rows of `strobe top`. `root_process` is that of the command. To be called once.
  // NotFound if nothing has been taken.
  absl::StatusOr<std::string> Finish(const RecordRequest& request, std::uint64_t root_process,
                                     const Paper& paper);

 private:
  struct Process {
    std::string program;
    LoadedProfile loaded;
  };

  absl::Status TakeFile(const std::string& path, std::string_view name);
  absl::Status WriteEach(const std::string& directory);
  static absl::Status WriteSum(const std::string& path, LoadedProfile& sum);
  absl::StatusOr<LoadedProfile> Sum();

  std::map<std::uint64_t, Process> processes_;  // by process id
};

}  // namespace strobe::internal
