// PullServer: an HTTP server in the program, from which pprof and scrapers fetch profiles.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "strobe/core/part.h"
#include "strobe/default_traits.h"
#include "strobe/encode/encoder.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/http/pull_handler.h"
#include "strobe/profiler.h"

namespace strobe {
namespace internal {

class PullListener;

}  // namespace internal

// The name, the media type and the file suffix of an encoder, for PullServer::AddFormat.
template <Encoder E>
PullFormat MakePullFormat(std::string_view name, E encoder = {}) {
  return {.name = std::string(name),
          .content_type = std::string(E::kContentType),
          .file_suffix = std::string(E::kFileSuffix),
          .encode = [encoder](const Profile& profile, const Symbols& symbols) mutable {
            return E(encoder).Encode(profile, symbols);
          }};
}

//   strobe::PullServer server(profiler);
//   server.AddFormat(strobe::MakePullFormat<strobe::FoldedEncoder>("folded"));
//   absl::Status status = server.Start();    // then: go tool pprof http://localhost:6060/
//
// See PullHandler for what it answers. A request records beside the continuous export. Requests
// that are under way when the server stops get an error, within about a second.
// * At most kMaxRecordings requests record at a time. A connection has kRequestSeconds to send its
//   whole request, of which the head may have 8 KiB; a body is not read. It carries one request.
// * There are at most 64 connections; a further one ends the oldest that is not being answered.
// * The server's threads block all signals, and are not sampled. A fork's child has no server: it
//   closes the sockets. A program that closes them is left alone; the server listens again.
// * Code beats the environment, which the constructor reads.
// Start and Stop are called one at a time. The profiler must outlive the server.
class PullServer {
 public:
  static constexpr int kRequestSeconds = 10;

  template <class Traits>
  explicit PullServer(BasicProfiler<Traits>& profiler, PullServerOptions options = {})
      : PullServer(PullSource{.record =
                                  [&profiler](const RecordingOptions& wanted) {
                                    return profiler.Record(wanted);
                                  },
                              .symbolize =
                                  [&profiler](const Profile& profile) {
                                    return Part<typename Traits::Symbolizer, SymbolOptions>()
                                        .Make(profiler.options().symbols)
                                        .Symbolize(profile);
                                  },
                              .stats = [&profiler] { return profiler.stats(); }},
                   std::move(options)) {}
  PullServer(PullSource source, PullServerOptions options);
  ~PullServer();
  PullServer(const PullServer&) = delete;
  PullServer& operator=(const PullServer&) = delete;

  // Before Start.
  void AddFormat(PullFormat format) { formats_.push_back(std::move(format)); }

  // InvalidArgument names the option that is wrong, Unavailable the address that cannot be used.
  absl::Status Start();
  // Ends the requests that are under way.
  void Stop();

  // "http://127.0.0.1:6060" while the server runs; else empty.
  [[nodiscard]] std::string url() const;

 private:
  PullSource source_;
  PullServerOptions options_;
  std::vector<PullFormat> formats_{MakePullFormat<PprofEncoder>("pprof")};
  std::unique_ptr<internal::PullListener> listener_;
};

}  // namespace strobe
