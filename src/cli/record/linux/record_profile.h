// RecordedProfiles: the profiles of the processes of one recording, and their sum.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "profile/loaded_profile.h"
#include "record/recording_output.h"

namespace strobe::internal {

class RecordedProfiles {
 public:
  // The times of samples take at most this much memory. Those of later samples are left out, and
  // the recording says of how many.
  static constexpr std::size_t kMaxMomentBytes = std::size_t{64} << 20;

  // What cannot be taken is said to `output`. The recording has begun at that time, in nanoseconds
  // since 1970.
  explicit RecordedProfiles(RecordingOutput& output, std::int64_t begin_ns = 0,
                            std::size_t max_moment_bytes = kMaxMomentBytes)
      : output_(output), begin_ns_(begin_ns), max_moment_bytes_(max_moment_bytes) {}

  // Reads the profiles that have come into `directory` since the last call, and removes their
  // files. The profiles of a process are added up. A file that does not read as a profile is
  // skipped, and named on standard error. One that cannot be opened stays for the next call: false
  // then.
  bool Take(const std::string& directory);
  // True if a profile of the process has been taken that ends at that time since 1970, or later.
  [[nodiscard]] bool HasUntil(std::uint64_t process, std::int64_t unix_ns) const;
  // True if nothing has been taken.
  [[nodiscard]] bool empty() const { return processes_.empty() && !outside_; }
  // How many samples the profiles that were taken have.
  [[nodiscard]] std::uint64_t samples() const { return samples_; }

  // Adds what was recorded from outside, which has the CPU time of its processes alone. To be
  // called once, before Finish.
  void SetOutside(std::optional<LoadedProfile> loaded);
  // Programs of which nothing is recorded, and why the first is not, for Finish to say. If there
  // are none, the reason is why such programs would not be; empty for none.
  void SetRefused(std::uint64_t programs, std::string reason) {
    refused_ = programs;
    refusal_ = std::move(reason);
  }
  // What is asked for besides CPU time, as "--alloc, --wall": perf events do not see it.
  void SetAsked(std::string asked) { asked_ = std::move(asked); }

  // The CPU time that the system has counted of all that was recorded. Where much more of it is in
  // no profile than starts and ends take, Finish says so.
  void SetUsed(std::int64_t cpu_ns) { used_ns_ = cpu_ns; }
  // How much is said to be missing of that, if profiles of so many processes have `recorded_ns`; 0
  // if nothing is.
  static std::int64_t MissingNs(std::int64_t used_ns, std::int64_t recorded_ns,
                                std::size_t processes);

  // Delivers what has been taken. `root_process` is that of the command. To be called once. False
  // if there is nothing, or it cannot be written.
  bool Finish(std::uint64_t root_process);

 private:
  void LimitMoments(Profile& profile);
  absl::Status TakeFile(const std::string& path, std::string_view name);
  absl::StatusOr<LoadedProfile> Sum(std::uint64_t root_process);
  // The ids of all processes.
  [[nodiscard]] std::set<std::uint64_t> Ids() const;
  // Names a profile, and writes it, for a directory.
  absl::Status WriteNamed(LoadedProfile& loaded);
  void SayCpuTimeAlone(LoadedProfile& sum) const;
  void SayMissing(LoadedProfile& sum, std::size_t processes) const;
  [[nodiscard]] std::string RefusalText() const;

  RecordingOutput& output_;
  const std::int64_t begin_ns_;
  std::map<std::uint64_t, LoadedProfile> processes_;
  std::optional<LoadedProfile> outside_;
  std::string refusal_;
  std::uint64_t refused_ = 0;
  std::string asked_;
  std::map<std::uint64_t, std::int64_t> until_ns_;  // the latest end of a profile of the process
  std::uint64_t samples_ = 0;
  std::int64_t used_ns_ = 0;
  const std::size_t max_moment_bytes_;
  std::size_t moment_bytes_ = 0;
  std::uint64_t moments_left_out_ = 0;
};

}  // namespace strobe::internal
