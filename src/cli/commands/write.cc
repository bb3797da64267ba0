// Profiles in the formats that the library writes.
#include <array>
#include <span>
#include <utility>

#include "absl/strings/str_cat.h"
#include "command.h"
#include "profile/merge.h"
#include "strobe/encode/firefox_encoder.h"
#include "strobe/encode/folded_encoder.h"
#include "strobe/encode/html_encoder.h"
#include "strobe/encode/otlp_encoder.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/encode/speedscope_encoder.h"

namespace strobe::internal {
namespace {

constexpr std::array<Format, 6> kFormats{{{"pprof", ".pb.gz"},
                                          {"folded", ".folded"},
                                          {"speedscope", ".speedscope.json"},
                                          {"firefox", ".firefox.json.gz"},
                                          {"otlp", ".otlp"},
                                          {"html", ".html"}}};

}  // namespace

std::span<const Format> Formats() { return kFormats; }

absl::StatusOr<std::string> FormatOf(const Request& request) {
  if (!request.format.empty()) return request.format;
  for (const Format& format : kFormats) {
    if (request.output.ends_with(format.suffix)) return std::string(format.name);
  }
  if (request.output.ends_with(".pb") || request.output.ends_with(".pprof")) return "pprof";
  if (request.output.ends_with(".json")) return "speedscope";
  if (request.output.empty() || request.output == "-") return "pprof";
  return absl::InvalidArgumentError(
      absl::StrCat(request.output,
                   ": which format? Say it by --format, or end the name in .pb.gz, "
                   ".folded, .speedscope.json, .firefox.json.gz, .otlp or .html"));
}

Text EncodeAs(const std::string& format, const LoadedProfile& loaded, const Request& request) {
  const Profile& profile = loaded.profile;
  const Symbols& symbols = loaded.symbols;
  if (format == "folded") {
    return FoldedEncoder({.value_type = request.type, .threads = !profile.threads.empty()})
        .Encode(profile, symbols);
  }
  if (format == "speedscope") return SpeedscopeEncoder().Encode(profile, symbols);
  if (format == "firefox")
    return FirefoxEncoder({.value_type = request.type}).Encode(profile, symbols);
  if (format == "otlp") return OtlpEncoder().Encode(profile, symbols);
  if (format == "html") return HtmlEncoder().Encode(profile, symbols);
  return PprofEncoder({.full_names = request.full_names,
                       .moments = !profile.moments.empty(),
                       .comments = loaded.comments})
      .Encode(profile, symbols);
}

Text EncodeWhatIsLeft(const std::string& format, const LoadedProfile& loaded,
                      const Request& request) {
  const absl::StatusOr<LoadedProfile> sum = MergeProfiles(std::span(&loaded, 1));
  if (!sum.ok()) return sum.status();
  return EncodeAs(format, *sum, request);
}

Text ComparisonPage(const LoadedProfile& base, const LoadedProfile& loaded) {
  return HtmlEncoder().EncodeComparison(loaded.profile, loaded.symbols, base.profile, base.symbols);
}

}  // namespace strobe::internal
