// RecordingOutput: where the profile of a recording goes, and what is said of it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "command.h"
#include "exit_status.h"
#include "loaded_profile.h"
#include "progress.h"
#include "terminal.h"

namespace strobe::internal {

struct OutputOptions {
  // The end of its name decides the format. A directory gets a pprof file for each process. Empty:
  // PROGRAM.PID.N.pb.gz in the current directory.
  std::string path;
  bool shows_top = true;
};

class RecordingOutput {
 public:
  RecordingOutput(OutputOptions options, const Terminal& terminal);

  // InvalidArgument if the end of the name is that of no format.
  [[nodiscard]] absl::Status Check() const;
  // True if the output is a directory.
  [[nodiscard]] bool has_directory() const;
  // The profile of one process, for a directory.
  absl::Status WriteToDirectory(const LoadedProfile& loaded) const;

  // Says on a terminal how far the recording is.
  void Say(double seconds, std::uint64_t samples, std::uint64_t lost = 0);
  // Says one line on standard error. Returns the status to exit with.
  int Fail(const std::string& what, int status = kFailed);
  // Writes the profile, which has names, unless its `processes` are in the directory already.
  // Prints where it is, and its first rows, to standard error. An error is printed. False for one.
  bool Deliver(absl::StatusOr<LoadedProfile> loaded, std::size_t processes);

 private:
  absl::Status Write(LoadedProfile loaded, std::size_t processes);

  const OutputOptions options_;
  const Terminal terminal_;
  Progress progress_{terminal_};
};

}  // namespace strobe::internal
