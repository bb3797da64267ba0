// SessionFile: the one file of a session, at the path that the user has named. Compiled into each
// library that asks.
#pragma once

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/aggregate/selected_rows.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/export/exporter.h"
#include "strobe/export/profile_sum.h"

namespace strobe::internal {

// Replaces the content of the file, which is created if it is missing. The error names the reason,
// without the path.
inline absl::Status WriteWholeFile(const std::string& path, std::string_view bytes) {
  const auto error = [] { return absl::UnavailableError(std::strerror(errno)); };
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
  if (file < 0) return error();
  absl::Status status;
  while (!bytes.empty() && status.ok()) {
    const ssize_t written = write(file, bytes.data(), bytes.size());
    if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
    if (written < 0 && errno != EINTR) status = error();
  }
  if (close(file) != 0 && status.ok()) status = error();
  return status;
}

inline Profile WithoutEmptyStacks(const Profile& period) {
  return WithRows(period, [&](std::size_t row) { return period.samples[row].stack != 0; });
}

// What a session has sampled so far, and its file. Thread-safe.
class SessionFile {
 public:
  struct Options {
    std::string path = {};                 // absolute; empty for no file
    std::vector<std::string> levels = {};  // see ProfileSum
    bool drops_empty_stacks = false;       // leaves rows without a frame out
  };
  explicit SessionFile(Options options) : options_(std::move(options)), sum_(options_.levels) {}

  // Adds the period, and writes the file with all periods. After an error, the next call writes
  // this period, too.
  absl::Status Add(const Profile& period, const Symbols& symbols) {
    {
      const std::lock_guard lock(mutex_);
      sum_.Add(options_.drops_empty_stacks ? WithoutEmptyStacks(period) : period, symbols);
    }
    if (options_.path.empty()) return absl::OkStatus();
    const absl::StatusOr<std::string> bytes = Encode();
    return bytes.ok() ? WriteWholeFile(options_.path, *bytes) : bytes.status();
  }

  // All periods, as the file has them.
  absl::StatusOr<std::string> Encode() const {
    const std::lock_guard lock(mutex_);
    return PprofEncoder().Encode(sum_.profile(), sum_.symbols());
  }
  // Calls visit(profile) for the sum of all periods.
  template <class Visitor>
  void Visit(const Visitor& visit) const {
    const std::lock_guard lock(mutex_);
    visit(sum_.profile());
  }

  [[nodiscard]] const std::string& path() const { return options_.path; }

 private:
  const Options options_;
  mutable std::mutex mutex_;
  ProfileSum sum_;
};

// The file of the session that runs, or ran last. Thread-safe.
class CurrentFile {
 public:
  void Begin(SessionFile::Options options) {
    auto file = std::make_shared<SessionFile>(std::move(options));
    const std::lock_guard lock(mutex_);
    file_ = std::move(file);
  }
  // nullptr before the first Begin.
  [[nodiscard]] std::shared_ptr<SessionFile> Get() const {
    const std::lock_guard lock(mutex_);
    return file_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<SessionFile> file_;
};

// Adds each period to the session's file.
class SessionFileExporter {
 public:
  static constexpr bool kBringsNoFiles = true;

  explicit SessionFileExporter(std::shared_ptr<CurrentFile> current)
      : current_(std::move(current)) {}

  [[nodiscard]] static bool TakesProfiles() { return true; }
  // An error refuses the period, because the sum has it: it must not be added again.
  absl::StatusOr<std::string> Export(const ExportRequest& request) {
    if (file_ == nullptr) file_ = current_->Get();
    if (file_ == nullptr) return absl::InvalidArgumentError("no file is named");
    const absl::Status status = file_->Add(request.profile, request.symbols);
    if (status.ok()) return file_->path();
    return absl::InvalidArgumentError(status.message());
  }

 private:
  std::shared_ptr<CurrentFile> current_;
  std::shared_ptr<SessionFile> file_;  // of this session, from its first period on
};
static_assert(ProfileTakingExporter<SessionFileExporter>);

}  // namespace strobe::internal
