// FileExporter: each profile as a file of its own in one directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "strobe/core/options.h"
#include "strobe/export/exporter.h"

namespace strobe {

// Writes <directory>/<program>.<process id>.<sequence><suffix>, readable by the user alone whatever
// the umask says (on Windows: by whom the directory's access list says).
// * The bytes go to a temporary name in the same directory, which is then renamed: a reader never
//   sees half a profile. After an error nothing is left behind. Nothing is synced to the disk: a
//   power cut may cost the last profiles, never the program's time.
// * No profile is ever overwritten. Where the name is taken (a process id used again, as in
//   containers), the number after the highest one of this program and process takes the sequence's
//   place.
// * After a success, the oldest profiles of this program beyond max_files and max_bytes are
//   removed, and temporaries that a killed process left more than an hour ago. Files with the
//   encoder's suffix and with any of kProfileFileSuffixes share one quota. Only files of this user
//   whose names are of this program's own pattern; never the one just written.
// * A relative directory is taken from where the process stood when the exporter was constructed,
//   so that a later chdir scatters nothing. Missing directories are created, with mode 0700, at the
//   first Export.
class FileExporter {
 public:
  // Looked at for removal; a directory with more entries keeps some files longer.
  static constexpr std::size_t kMaxDirectoryEntries = 100'000;
  static constexpr std::size_t kMaxProgramBytes = 128;
  // Names tried for the temporary, and for the profile, before an export fails.
  static constexpr int kMaxNameAttempts = 16;
  static constexpr std::int64_t kStaleTemporarySeconds = 3600;

  explicit FileExporter(const ExporterOptions& options);

  // The path of the file. Errors carry the path and the system's reason.
  absl::StatusOr<std::string> Export(const ExportRequest& request);

 private:
  std::string directory_;
  std::uint64_t max_files_;
  std::uint64_t max_bytes_;
};
static_assert(Exporter<FileExporter>);

}  // namespace strobe
