// NamedProfiles: sessions one after another, each profile a file with a name that the program
// chooses. What strobe_gtest.h and strobe_benchmark.h have in common.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "strobe/own_parts.h"

namespace strobe {

// Keeps the last profile in memory, for the one who decides whether it becomes a file.
class KeepingExporter {
 public:
  static constexpr bool kBringsNoFiles = true;
  explicit KeepingExporter(std::shared_ptr<std::string> bytes) : bytes_(std::move(bytes)) {}
  absl::StatusOr<std::string> Export(const ExportRequest& request) {
    bytes_->assign(request.bytes);
    return std::string("memory");
  }

 private:
  std::shared_ptr<std::string> bytes_;
};

// pprof, with the iterations that the one who keeps the profile knows at the session's end.
class IterationsEncoder {
 public:
  static constexpr std::string_view kFileSuffix = PprofEncoder::kFileSuffix;
  static constexpr std::string_view kContentType = PprofEncoder::kContentType;
  explicit IterationsEncoder(std::shared_ptr<const double> iterations)
      : iterations_(std::move(iterations)) {}
  absl::StatusOr<std::string> Encode(const Profile& profile, const Symbols& symbols) {
    return PprofEncoder({.iterations = *iterations_}).Encode(profile, symbols);
  }

 private:
  std::shared_ptr<const double> iterations_;
};
static_assert(Encoder<IterationsEncoder>);

// Not thread-safe: Begin, Keep and Drop are called by the same thread.
class NamedProfiles {
 public:
  struct Traits : DefaultTraits {
    using Outputs = OutputList<Output<IterationsEncoder, KeepingExporter>>;
  };
  // Longer names are cut.
  static constexpr std::size_t kMaxNameBytes = 200;
  // A session that lasts longer keeps its last such period only.
  static constexpr double kMaxSessionS = 86'400;

  // Options for work that is short: more samples than a service would take, and waits too.
  static ProfilerOptions ShortWork() {
    return {.sampling = {.cpu_frequency_hz = Option<double>::Default{500},
                         .wall_frequency_hz = Option<double>::Default{20},
                         .max_overhead = Option<double>::Default{0.02}}};
  }

  // `directory` is created with the first file.
  explicit NamedProfiles(std::string directory, ProfilerOptions options = ShortWork())
      : directory_(NativePlatform::Directories().AbsolutePath(directory)),
        bytes_(std::make_shared<std::string>()),
        iterations_(std::make_shared<double>(0)),
        profiler_(ForSessions(std::move(options)), {.encoder = IterationsEncoder(iterations_),
                                                    .exporter = KeepingExporter(bytes_)}) {}
  // Ends the session, and drops its profile.
  ~NamedProfiles() { Drop(); }
  NamedProfiles(const NamedProfiles&) = delete;
  NamedProfiles& operator=(const NamedProfiles&) = delete;

  // For the registration of further threads.
  BasicProfiler<Traits>& profiler() { return profiler_; }

  // Begins a session and registers the calling thread as "main". Errors: those of Start.
  absl::Status Begin() {
    if (absl::Status status = profiler_.Start(); !status.ok()) return status;
    bytes_->clear();
    registration_.emplace(profiler_.RegisterThread("main"));
    begin_cpu_ns_ = ThreadCpuTimeNs();
    return absl::OkStatus();
  }

  // The CPU time of the calling thread, which has begun the session, since then.
  [[nodiscard]] std::int64_t CpuTimeNs() const { return ThreadCpuTimeNs() - begin_cpu_ns_; }

  // Ends the session and writes <directory>/<name>.pb.gz, with '_' for what no system likes in a
  // file's name. Replaces an older file. Returns the path, or why there is no file. `iterations` is
  // how often the session did its work, if sessions do it more or less often: `strobe ci` and
  // `strobe diff --per iterations` compare the amounts of one.
  absl::StatusOr<std::string> Keep(std::string_view name, double iterations = 0) {
    *iterations_ = iterations;
    if (absl::Status status = End(); !status.ok()) return status;
    if (bytes_->empty()) return absl::NotFoundError("the session has no profile");
    const std::string file = FileName(name);
    auto directory = NativePlatform::Directories().Open(directory_);
    if (!directory.ok()) return directory.status();
    // A process that was killed may have left one.
    static_cast<void>((*directory)->Remove(file + ".tmp"));
    auto written = (*directory)->Write(file + ".tmp", *bytes_);
    if (!written.ok()) return written.status();
    static_cast<void>((*directory)->Remove(file));
    if (absl::Status status = (*written)->RenameTo(file); !status.ok()) return status;
    return (*directory)->PathOf(file);
  }

  // Ends the session, if there is one, without a file.
  void Drop() { End().IgnoreError(); }

  // Writes `status` to stderr once, if it is an error: a missing profile is not worth a line for
  // each test.
  void WarnOnce(const absl::Status& status) {
    if (status.ok() || std::exchange(has_warned_, true)) return;
    NativePlatform::WriteLine(
        absl::StrCat("strobe: no profiles of this program: ", status.ToString()));
  }

 private:
  static std::int64_t ThreadCpuTimeNs() {
    return NativePlatform::ThreadCpuTimeNs(NativePlatform::CurrentThreadId());
  }
  static ProfilerOptions ForSessions(ProfilerOptions options) {
    options.exporter.period_s = kMaxSessionS;
    return options;
  }
  static std::string FileName(std::string_view name) {
    std::string file(name.substr(0, kMaxNameBytes));
    for (char& letter : file) {
      const bool is_plain = (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
                            (letter >= '0' && letter <= '9') || letter == '-' || letter == '.';
      if (!is_plain) letter = '_';
    }
    // No hidden file, and none with an empty name.
    if (file.empty() || file.front() == '.') file.insert(0, "_");
    return file + ".pb.gz";
  }
  absl::Status End() {
    absl::Status status = profiler_.Stop();
    registration_.reset();
    return status;
  }

  const std::string directory_;
  const std::shared_ptr<std::string> bytes_;
  const std::shared_ptr<double> iterations_;
  BasicProfiler<Traits> profiler_;
  std::optional<Registration> registration_;
  std::int64_t begin_cpu_ns_ = 0;
  bool has_warned_ = false;
};

}  // namespace strobe
