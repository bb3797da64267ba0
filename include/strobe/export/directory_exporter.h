// DirectoryExporter: each profile as a file of its own in one directory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/core/options.h"
#include "strobe/export/exporter.h"
#include "strobe/export/profile_directories.h"

namespace strobe {

// Writes <directory>/<program>.<process id>.<sequence><suffix>, readable by the user alone whatever
// the umask says (on Windows: as the directory's access list says).
// * The bytes go to a temporary name in the same directory, which is then renamed: a reader never
//   sees half a profile. A failed export leaves no file behind, even if memory runs out. Nothing is
//   synced to the disk: a power cut may cost the last profiles, but an export does not wait for the
//   disk.
// * No profile is ever overwritten. If the name is taken (a process id used again, as in
//   containers), the sequence is replaced by one more than the highest of this program and process.
// * After a success, the oldest profiles of this program beyond max_files and max_bytes are
//   removed, and temporary files that a killed process left more than an hour ago. Files with the
//   encoder's suffix and with any of kProfileFileSuffixes share one quota. Only files of this user
//   with names of this program's own pattern are removed; never the file just written.
// * Windows of what was kept go to the directory kWindowDirectory in it, which the first window
//   creates with the mode of the directory around it.
// * A relative directory is resolved when the exporter is constructed, so that a later change of
//   the working directory has no effect. Missing directories are created, with mode 0700, by Check
//   or Export. Both hold it open from then on, and use it where its path leads nowhere any more: in
//   a program that has changed its root, or has given up rights that the path needs.
class DirectoryExporter {
 public:
  static constexpr bool kBringsNoFiles = true;
  static constexpr bool kTakesWindows = true;
  // The directory of windows of what was kept, inside `directory`; with a quota of its own.
  static constexpr std::string_view kWindowDirectory = "last";
  // Entries read when old files are removed; a directory with more entries keeps some files longer.
  static constexpr std::size_t kMaxDirectoryEntries = 100'000;
  static constexpr std::size_t kMaxProgramBytes = 128;
  // Names tried for the temporary file, and for the profile, before an export fails.
  static constexpr int kMaxNameAttempts = 16;
  static constexpr std::int64_t kStaleTemporarySeconds = 3600;

  // `directories` must outlive the exporter and its copies.
  DirectoryExporter(const ProfileDirectories& directories, const ExporterOptions& options);

  // Creates the directory, and makes and removes a file in it.
  absl::Status Check();
  // The path of the file. Errors carry the path and the system's reason.
  absl::StatusOr<std::string> Export(const ExportRequest& request);

 private:
  // A copy of an exporter opens the directory anew: it may be used by another thread.
  struct Held {
    Held() = default;
    Held(const Held& /*other*/) {}
    Held(Held&&) = default;
    Held& operator=(const Held& other) { return *this = Held(other); }
    Held& operator=(Held&&) = default;
    ~Held() = default;

    std::unique_ptr<ProfileDirectory> directory{};
  };

  using Opened = absl::StatusOr<std::unique_ptr<ProfileDirectory>>;
  // Holds what has been opened now, or else what was held, if it is there.
  static absl::StatusOr<const ProfileDirectory*> Hold(Opened opened, Held& kept);
  absl::StatusOr<const ProfileDirectory*> Open();
  absl::StatusOr<const ProfileDirectory*> OpenWindows();

  const ProfileDirectories* directories_;
  Held held_;
  Held held_windows_;
  std::string directory_;
  std::uint64_t max_files_;
  std::uint64_t max_bytes_;
};
static_assert(CheckingExporter<DirectoryExporter>);

}  // namespace strobe
