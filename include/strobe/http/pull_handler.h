// PullHandler: answers the requests of Go's net/http/pprof, whatever library brings them.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "strobe/core/options.h"
#include "strobe/core/profile.h"
#include "strobe/core/recording_options.h"
#include "strobe/core/settings/secret.h"
#include "strobe/core/stats.h"
#include "strobe/core/symbols.h"

namespace strobe {

struct PullServerOptions {
  // Where the server listens. Anything but the loopback interface should have a token.
  Option<std::string> address = Option<std::string>::Default{"127.0.0.1"};
  // 0 takes any port that is free.
  Option<std::int64_t> port = Option<std::int64_t>::Default{6060};
  // If set, each request needs it: as a bearer token, or as the password of basic authentication
  // (http://any:TOKEN@host:port).
  Option<Secret> token = Option<Secret>::Default{{}};
  // The longest recording that a request may ask for.
  Option<std::int64_t> max_seconds = Option<std::int64_t>::Default{300};
};

std::span<const BasicOptionRow<PullServerOptions>> PullServerOptionTable();

// What the handler asks of a profiler.
struct PullSource {
  std::function<absl::StatusOr<Profile>(const RecordingOptions&)> record;
  std::function<absl::StatusOr<Symbols>(const Profile&)> symbolize;
  std::function<Stats()> stats;
};

// A format that a request can ask for by its name: ?format=folded.
struct PullFormat {
  std::string name;
  std::string content_type;
  std::string file_suffix;
  std::function<absl::StatusOr<std::string>(const Profile&, const Symbols&)> encode;
};

struct PullRequest {
  std::string path;
  std::map<std::string, std::string> query = {};  // decoded
  std::string authorization = {};                 // the header
  std::string host = {};                          // the header
};

struct PullResponse {
  int status = 200;
  std::string content_type = "text/plain; charset=utf-8";
  std::string body = {};
  std::vector<std::pair<std::string, std::string>> headers = {};
};

// GET /debug/pprof/ (an index), profile and wall (?seconds=30), allocs, heap, mutex, block
// (?seconds=5), cmdline; and /metrics (OpenMetrics).
// * ?format= names one of the formats; the first is the default. ?label=key=value keeps the samples
//   that have that label.
// * ?last=30 answers at once with what was before: see RecordingOptions::last. It takes the place
//   of ?seconds.
// * ?hz=1000 has profile and wall sampled at that rate meanwhile, if the program's is lower: see
//   RecordingOptions.
// * An error has the header X-Go-Pprof, so that pprof prints its text: 400 for a wrong parameter,
//   401 without the token, 403 for a foreign Host header, 404 for what is not measured, with what
//   to add, 503 if too many recordings run, or no session.
// Thread-safe: one call for each connection.
class PullHandler {
 public:
  // The first format is the default. `command_line` has a NUL between arguments.
  PullHandler(PullSource source, std::vector<PullFormat> formats, PullServerOptions options,
              std::string command_line);

  [[nodiscard]] PullResponse Handle(const PullRequest& request) const;
  // Ends all recordings, and refuses further ones.
  void Cancel() const { cancelled_->store(true); }

 private:
  // What a request asks for.
  struct Wanted {
    std::int64_t seconds = 0;
    std::int64_t last_seconds = 0;  // instead of seconds; 0 without
    std::int64_t frequency_hz = 0;  // 0: the program's
    const PullFormat* format = nullptr;
    std::string label = {};  // "key=value"; empty: all
  };
  [[nodiscard]] std::string ReadQuery(const std::map<std::string, std::string>& query,
                                      Wanted& wanted) const;
  [[nodiscard]] PullResponse Record(const PullRequest& request,
                                    const std::vector<std::string>& value_types,
                                    std::int64_t default_seconds) const;
  [[nodiscard]] std::string Index() const;
  [[nodiscard]] bool MayAsk(const std::string& authorization) const;
  [[nodiscard]] bool IsOwnHost(std::string_view host) const;

  const PullSource source_;
  const std::vector<PullFormat> formats_;
  const PullServerOptions options_;
  const std::string command_line_;
  const std::shared_ptr<std::atomic<bool>> cancelled_ = std::make_shared<std::atomic<bool>>(false);
};

namespace internal {

// True if they are equal. The time depends on the length of `given` alone.
bool IsEqualInConstantTime(std::string_view given, std::string_view secret);

// The profile without the samples that lack the label: "thread name=main", "request=42".
Profile WithLabel(const Profile& profile, std::string_view key, std::string_view value);

}  // namespace internal
}  // namespace strobe
