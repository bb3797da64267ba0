// RecordingOutput: where the profile of a recording goes, and what is said of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "commands/command.h"
#include "profile/loaded_profile.h"
#include "send.h"
#include "ui/exit_status.h"
#include "ui/progress.h"
#include "ui/terminal.h"

namespace strobe::internal {

struct OutputOptions {
  // The end of its name decides the format. A directory gets a pprof file for each process. In the
  // name of a file, %n is the program's name, %p its process, %t when the recording began (UTC), %h
  // the host, and %% a percent sign. Empty: PROGRAM.PID.N.pb.gz in the current directory, unless a
  // server gets the profile.
  std::string path;
  std::vector<Destination> destinations;
  bool shows_top = true;
};

// True if the profiles go to a directory of that path.
bool NamesDirectory(const std::string& path);
// True if each profile of several has a place of its own.
bool MayHavePeriods(const OutputOptions& output);

// Used by one thread at a time, but for Say, Fail and Print.
class RecordingOutput {
 public:
  RecordingOutput(OutputOptions options, const Terminal& terminal);

  // Before the program is run. InvalidArgument for a name of no format, or with a % of another
  // kind; the system's reason if nothing can be written there.
  [[nodiscard]] absl::Status Check() const;
  // True if the output is a directory.
  [[nodiscard]] bool has_directory() const { return NamesDirectory(options_.path); }
  // What a profile says of this machine; Deliver has it said.
  [[nodiscard]] const LabelSet& machine() const { return machine_; }
  // The profile of one process, for a directory.
  absl::Status WriteToDirectory(const LoadedProfile& loaded);

  // Says on a terminal how far the recording is, unless the program has it for itself.
  void Print(double seconds, std::uint64_t samples, std::uint64_t lost = 0);
  // From now on no first rows are printed: they would be those of one period of several.
  void BeginPeriods() { options_.shows_top = false; }
  // Says one line on standard error.
  void Say(const std::string& what);
  // The same of an error. Returns the status to exit with.
  int Fail(const std::string& what, int status = kFailed);
  // Writes the profile, which has names, unless its `processes` are in the directory already, and
  // sends it. If a server does not get it, there is a file in any case. Prints where the profile
  // is, and its first rows, to standard error. Errors are printed. False for one. Of a recording of
  // many profiles the oldest files are removed: see kMostFiles.
  bool Deliver(absl::StatusOr<LoadedProfile> loaded, std::size_t processes);

  // The files that a recording leaves, or those of its last delivery, if they are more.
  static constexpr std::size_t kMostFiles = 1000;

 private:
  std::string FreePath(const std::string& directory, const Profile& profile);
  absl::StatusOr<std::string> PathFor(const Profile& profile);
  absl::Status WriteNew(const std::string& path, const LoadedProfile& loaded);
  void RemoveOld();
  bool Failed(const absl::Status& status);
  bool Write(const LoadedProfile& loaded, std::size_t processes);
  // The number of servers that have the profile.
  std::size_t Send(const LoadedProfile& loaded);

  OutputOptions options_;
  const Terminal terminal_;
  const LabelSet machine_;
  std::deque<std::string> files_;              // that have been written, in their order
  std::map<std::string, std::uint64_t> next_;  // sequence of files whose names begin so
  std::size_t files_of_delivery_ = 0;          // the last of them
  std::mutex mutex_;                           // of progress_
  Progress progress_{terminal_};
};

}  // namespace strobe::internal
