// HttpExporter: sends each profile to a server, with retries and a spool on disk.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "strobe/export/exporter.h"
#include "strobe/export/http_client.h"
#include "strobe/export/profile_directories.h"
#include "strobe/export/spool.h"
#include "strobe/http/http_backend.h"
#include "strobe/http/http_options.h"

namespace strobe {

// What an HttpExporter asks of the system. Default: the system itself (see native_http.h).
struct HttpTools {
  std::function<std::unique_ptr<HttpClient>(const HttpClientOptions&)> make_client;
  const ProfileDirectories* directories = nullptr;
  std::string program;  // names the spool's slots
  std::function<std::chrono::steady_clock::time_point()> now;
  std::function<std::int64_t()> unix_ns;
  // Returns at `until`, or soon after the deadline has passed.
  std::function<void(std::chrono::steady_clock::time_point until, const ExportDeadline&)> wait;
  std::function<double()> random;  // from 0 to 1
};

// * An export makes up to `attempts` tries within `timeout_s`. Between tries it waits, for a random
//   time that doubles. Then the exporter pauses: from kMinPause, doubling to kMaxPause, or as long
//   as the server's Retry-After says. While it pauses, no connection is made.
// * Without a spool, Export fails until the server has the profile. The profiler keeps it.
// * With a spool, Export first writes the profile to disk and then sends it. If that fails, Export
//   succeeds, and returns the file's path. After each success the profiles that wait on disk are
//   sent, the oldest first, unless a newer profile of the program waits. So both are sent.
// * A profile that the server refuses is dropped: Export fails, or the account says so.
// * A profile may need several requests. Those that were delivered are not repeated, unless the
//   process ends in between.
// * Errors name the URL without user and query, and the server's answer. Each occurrence of a
//   secret in them is replaced.
// A copy has the same configuration, and nothing else: each session has a client and a spool's slot
// of its own.
class HttpExporter {
 public:
  static constexpr bool kBringsNoFiles = true;
  static constexpr std::chrono::milliseconds kFirstWait{250};
  static constexpr std::chrono::seconds kMinPause{5};
  static constexpr std::chrono::seconds kMaxPause{300};

  // If `backend` is an error, or an option is wrong, Check and every Export return that, as
  // FailedPrecondition. `tools.directories` must outlive the exporter and its copies.
  HttpExporter(absl::StatusOr<std::shared_ptr<const HttpBackend>> backend, HttpOptions options,
               HttpTools tools);
  HttpExporter(const HttpExporter& other)
      : HttpExporter(other.backend_, other.options_, other.tools_) {}
  HttpExporter(HttpExporter&&) = default;
  HttpExporter& operator=(const HttpExporter&) = delete;
  HttpExporter& operator=(HttpExporter&&) = default;
  ~HttpExporter() = default;

  // What is wrong with the configuration.
  [[nodiscard]] absl::Status Check() const;
  [[nodiscard]] bool TakesProfiles() const { return !backend_.ok() || backend().TakesProfiles(); }
  // The URL and the profile's number, or the path of the file that waits.
  absl::StatusOr<std::string> Export(const ExportRequest& request);
  [[nodiscard]] ExporterAccount account() const;

  // OK, or what is wrong with the configuration.
  [[nodiscard]] const absl::Status& status() const { return configuration_; }

 private:
  using Messages = std::vector<HttpMessage>;
  using Time = std::chrono::steady_clock::time_point;

  absl::Status Prepare();
  Judgement Deliver(const Messages& messages, const std::string& key, int attempts,
                    const ExportDeadline& deadline);
  Judgement SendAll(const Messages& messages, std::size_t& done, const ExportDeadline& deadline);
  Judgement Send(const HttpMessage& message, const ExportDeadline& deadline);
  void Pause(Verdict verdict);
  void SendSpooled(const ExportDeadline& deadline);
  absl::StatusOr<std::string> ExportDirectly(const Messages& messages, const std::string& key,
                                             const ExportDeadline& deadline);
  absl::StatusOr<std::string> ExportThroughSpool(const Messages& messages,
                                                 const ExportRequest& request,
                                                 const ExportDeadline& deadline);
  [[nodiscard]] Judgement Paused() const;
  [[nodiscard]] const HttpBackend& backend() const { return **backend_; }
  [[nodiscard]] std::string WithoutSecrets(std::string_view text) const;
  [[nodiscard]] absl::Status WithoutSecrets(const absl::Status& status) const;
  [[nodiscard]] ExportDeadline Deadline(const ExportDeadline& given) const;
  [[nodiscard]] std::string Place(const ExportRequest& request) const;

  absl::StatusOr<std::shared_ptr<const HttpBackend>> backend_;
  HttpOptions options_;
  HttpTools tools_;
  absl::Status configuration_;
  std::vector<std::string> secrets_;  // what errors must not show

  // Of this session.
  std::unique_ptr<HttpClient> client_;
  std::optional<Spool> spool_;
  // The messages that have been delivered, of profiles that were delivered in part; by file, or by
  // number.
  std::map<std::string, std::size_t> partly_delivered_;
  Time paused_until_{};
  std::chrono::milliseconds next_pause_ = kMinPause;
  std::optional<std::chrono::seconds> retry_after_;  // of the last answer
  absl::Status last_status_;
  ExporterAccount account_;
};
static_assert(AccountingExporter<HttpExporter> && CheckingExporter<HttpExporter> &&
              ProfileTakingExporter<HttpExporter>);

}  // namespace strobe
