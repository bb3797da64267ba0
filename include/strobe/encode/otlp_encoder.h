// OtlpEncoder: a Profile as OpenTelemetry's profiles signal.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "strobe/core/profile.h"
#include "strobe/core/symbols.h"
#include "strobe/encode/encoder.h"

namespace strobe {

struct OtlpOptions {
  // Attributes of the resource, as texts: {"service.name", "shop"}, {"deployment.environment",
  // "production"}. Without a "service.name" among them, it is "unknown_service:<program>", as the
  // specification wants it.
  std::vector<std::pair<std::string, std::string>> resource = {};
};

// * The bytes are an ExportProfilesServiceRequest, and so ProfilesData too: one resource, one
//   scope, and a profile for each value type, in which each sample has exactly one value. Rows with
//   the value 0 are left out.
// * Each profile has the sampling period. Pyroscope makes CPU time of the type samples/count, and
//   refuses samples with more than one value.
// * Attributes of a sample are "thread.id" (an integer), "thread.name", and the labels that the
//   program has set. Texts are plain: Pyroscope does not read those in the table of strings.
// * Entry 0 of each table is the empty one. Other entries are distinct, and something refers to
//   each.
// * Function names are short (see ShortFunctionName); the full ones are system names.
// * Times of moments are not written: all samples of a profile must have the same shape.
class OtlpEncoder {
 public:
  static constexpr std::string_view kFileSuffix = ".otlp";
  static constexpr std::string_view kContentType = "application/x-protobuf";
  // The release of opentelemetry-proto whose messages are written; 1.11 has the same. Receivers of
  // earlier ones do not understand them: field numbers change while the signal is in alpha.
  static constexpr std::string_view kProtoVersion = "1.10";
  // The longest message. protobuf itself allows 2 GiB.
  static constexpr std::size_t kMaxMessageBytes = std::size_t{1} << 30;

  OtlpEncoder() = default;
  explicit OtlpEncoder(OtlpOptions options);

  // InvalidArgument if an index of the profile is out of range, OutOfRange if the message is too
  // long.
  absl::StatusOr<std::string> Encode(const Profile& profile, const Symbols& symbols);

  // The resource alone, as a ProcessContext of opentelemetry-proto (processcontext.v1development):
  // what a process says of itself to profilers of the whole host. Of `process` the program, the
  // process id and the machine count. See strobe/platform/process_context.h.
  [[nodiscard]] std::string EncodeProcessContext(const Profile& process) const;

 private:
  OtlpOptions options_;
};
static_assert(Encoder<OtlpEncoder>);

}  // namespace strobe
