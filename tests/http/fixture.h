// What the tests of exporters over HTTP share: tools with a clock that stands still, and profiles.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "strobe/encode/pprof_encoder.h"
#include "strobe/export/http_client.h"
#include "strobe/http/http_exporter.h"
#include "strobe/testing/fakes/manual_directories.h"
#include "strobe/testing/fakes/manual_http_client.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {

// A server, directories and a clock, all in memory.
struct ManualHttpTools {
  static constexpr std::int64_t kBeginNs = 1'700'000'000'000'000'000;

  HttpTools Tools() {
    return {.make_client =
                [this](const HttpClientOptions& options) {
                  client_options.push_back(options);
                  return std::make_unique<ManualHttpClient>(server);
                },
            .directories = &directories,
            .program = "program",
            .now = [this] { return std::chrono::steady_clock::time_point(now); },
            .unix_ns = [this] { return kBeginNs + now.count(); },
            .wait =
                [this](std::chrono::steady_clock::time_point until, const ExportDeadline&) {
                  waits.push_back(until.time_since_epoch() - now);
                  now = std::max<std::chrono::nanoseconds>(now, until.time_since_epoch());
                },
            .random = [this] { return random; }};
  }

  ManualHttpServer server;
  ManualDirectories directories;
  std::chrono::nanoseconds now{std::chrono::hours(1)};
  std::vector<std::chrono::nanoseconds> waits;
  std::vector<HttpClientOptions> client_options;
  double random = 1;
};

// A profile of two threads, and its pprof.
struct EncodedProfile {
  explicit EncodedProfile(std::uint64_t sequence = 0) {
    profile.period_type = {"cpu", "nanoseconds"};
    profile.period = 10'000'000;
    profile.program = "shop";
    profile.process_id = 4711;
    profile.sequence = sequence;
    profile.time_ns =
        1'700'000'000'123'456'789 + static_cast<std::int64_t>(sequence) * 10'000'000'000;
    profile.duration_ns = 10'000'000'000;
    AddTwoThreads(profile);
    bytes = *PprofEncoder().Encode(profile, {});
  }
  [[nodiscard]] ExportRequest request() const {
    return {.bytes = bytes,
            .file_suffix = PprofEncoder::kFileSuffix,
            .content_type = PprofEncoder::kContentType,
            .profile = profile,
            .symbols = symbols};
  }

  Profile profile;
  Symbols symbols;
  std::string bytes;
};

}  // namespace strobe::testing
