// The contract of an exporter: a profile, encoded or not -> a file, a server, a test.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/core/options.h"
#include "strobe/core/profile.h"
#include "strobe/core/stats.h"
#include "strobe/core/symbols.h"

namespace strobe {

// True if an error of an encoder or an exporter means that this profile can never be delivered: the
// profile is invalid (InvalidArgument; a server's 400 or 415) or too large (OutOfRange; a server's
// 413). All other errors may pass: no room, no permission, no answer.
inline bool RefusesProfile(const absl::Status& status) {
  return status.code() == absl::StatusCode::kInvalidArgument ||
         status.code() == absl::StatusCode::kOutOfRange;
}

// The time by which an export must return. It may come nearer while Export runs, because the
// session ends: an exporter that waits asks again at least every kMaxStepMs.
class ExportDeadline {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::milliseconds kMaxStepMs{50};

  ExportDeadline() = default;  // never
  // `end_ns` must outlive the deadline: nanoseconds of the steady clock.
  explicit ExportDeadline(const std::atomic<std::int64_t>& end_ns) : end_ns_(&end_ns) {}

  [[nodiscard]] Time time() const {
    if (end_ns_ == nullptr) return latest_;
    const std::chrono::nanoseconds end_ns(end_ns_->load(std::memory_order_relaxed));
    return std::min(latest_, Time(std::chrono::duration_cast<Time::duration>(end_ns)));
  }
  [[nodiscard]] bool HasPassed() const { return std::chrono::steady_clock::now() >= time(); }
  // The same, but at `latest` or before.
  [[nodiscard]] ExportDeadline By(Time latest) const {
    ExportDeadline sooner = *this;
    sooner.latest_ = std::min(latest_, latest);
    return sooner;
  }

 private:
  Time latest_ = Time::max();
  const std::atomic<std::int64_t>* end_ns_ = nullptr;
};

// One profile on its way out. Valid for the duration of the call.
struct ExportRequest {
  std::string_view bytes;         // by the encoder; empty for an exporter that takes profiles
  std::string_view file_suffix;   // of the encoder
  std::string_view content_type;  // of the encoder
  const Profile& profile;         // what was encoded
  const Symbols& symbols;         // the names of its frames
  ExportDeadline deadline{};
  bool has_newer = false;  // a newer profile waits for this output
};

// What an exporter that keeps profiles beyond the call of Export has done with them, since it was
// constructed. Export's own errors are not in it.
struct ExporterAccount {
  std::uint64_t delivered = 0;
  std::array<std::uint64_t, kExportDropCount> drops{};  // by ExportDrop
  std::int64_t amount_dropped = 0;                      // in the dropped profiles
  SpoolStats spool{};
  std::string last_error;  // of the last try to deliver; empty after a success
};

// * Made from `const ExporterOptions&`, or given in Parts and copied for each session. Neither has
//   side effects: nothing is created before the first Check or Export.
// * Check(), optional: OK, or why no profile can be delivered until somebody changes something: the
//   program, its options or the system. Start calls it, and returns the error. What may pass by
//   itself is no error: a disk without room, a server that does not answer.
// * Export(request) delivers all of the profile or none, and returns where it went (a path, a URL)
//   or the reason of the failure. It may take long: only this output's next export waits for it.
//   An exporter that has not returned by request.deadline is left behind when the session stops.
//   After an error that RefusesProfile the profile is dropped and counted. After any other error
//   the profiler calls again with the same profile when the next period ends.
// * TakesProfiles(), optional: true if it encodes profiles by itself. The output's encoder is not
//   called then.
// * account(), optional: for an exporter that takes a profile before it is delivered, into a spool.
//   Called after each Export.
// * kTakesWindows, optional: true if it takes windows of what was kept, too (Profile::window not
//   empty), and keeps them apart from the periods, which have the same samples. A window is tried
//   once, whatever the error.
// Called on the output's thread only, Check before that thread begins.
template <class E>
concept Exporter = requires(E& exporter, const ExportRequest& request) {
  { exporter.Export(request) } -> std::same_as<absl::StatusOr<std::string>>;
};

template <class E>
concept CheckingExporter = Exporter<E> && requires(E& exporter) {
  { exporter.Check() } -> std::same_as<absl::Status>;
};

template <class E>
concept ProfileTakingExporter = Exporter<E> && requires(const E& exporter) {
  { exporter.TakesProfiles() } -> std::same_as<bool>;
};

template <class E>
inline constexpr bool TakesWindows = false;
template <class E>
requires(E::kTakesWindows) inline constexpr bool TakesWindows<E> = true;

template <class E>
concept AccountingExporter = Exporter<E> && requires(const E& exporter) {
  { exporter.account() } -> std::convertible_to<ExporterAccount>;
};

}  // namespace strobe
