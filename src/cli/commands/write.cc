// Profiles in the formats that the library writes.
#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "command.h"
#include "profile/merge.h"
#include "strobe/encode/firefox_encoder.h"
#include "strobe/encode/folded_encoder.h"
#include "strobe/encode/html_encoder.h"
#include "strobe/encode/machine_tags.h"
#include "strobe/encode/otlp_encoder.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/encode/speedscope_encoder.h"
#include "strobe/encode/svg_encoder.h"

namespace strobe::internal {
namespace {

// pprof has no place for a program's name but that of its file, which may be another: of a link, a
// script, a whole machine. Then a comment says it, as those of the library's own profiles do. So
// does one for the machine.
std::vector<std::string> CommentsOf(const LoadedProfile& loaded) {
  std::vector<std::string> comments = loaded.comments;
  const Profile& profile = loaded.profile;
  const std::string path = profile.modules.empty() ? "" : profile.modules[0].path;
  const bool has_one = std::ranges::any_of(
      comments, [](const std::string& comment) { return comment.starts_with(kProgramComment); });
  const bool is_file = path.substr(path.find_last_of("/\\") + 1) == profile.program;
  if (!profile.program.empty() && !is_file && !has_one) {
    comments.push_back(absl::StrCat(std::string(kProgramComment), profile.program, ", process ",
                                    profile.process_id));
  }
  const bool has_machine = std::ranges::any_of(
      comments, [](const std::string& comment) { return !MachineIn(comment).empty(); });
  if (!profile.machine.empty() && !has_machine) comments.push_back(MachineComment(profile.machine));
  return comments;
}

Text EncodePprof(const LoadedProfile& loaded, const Request& request) {
  return PprofEncoder({.full_names = request.full_names,
                       .comments = CommentsOf(loaded),
                       .number_units = loaded.number_units,
                       .drop_frames = loaded.drop_frames,
                       .keep_frames = loaded.keep_frames})
      .Encode(loaded.profile, loaded.symbols);
}
Text EncodeFolded(const LoadedProfile& loaded, const Request& /*request*/) {
  const Profile& profile = loaded.profile;
  // The type that tables show: the format cannot say it.
  const std::string type(
      profile.value_types.empty() ? "" : profile.value_types[profile.default_value_type].type);
  return FoldedEncoder({.value_type = type, .threads = !loaded.profile.threads.empty()})
      .Encode(loaded.profile, loaded.symbols);
}
Text EncodeSpeedscope(const LoadedProfile& loaded, const Request& /*request*/) {
  return SpeedscopeEncoder().Encode(loaded.profile, loaded.symbols);
}
Text EncodeFirefox(const LoadedProfile& loaded, const Request& /*request*/) {
  return FirefoxEncoder().Encode(loaded.profile, loaded.symbols);
}
Text EncodeOtlp(const LoadedProfile& loaded, const Request& /*request*/) {
  return OtlpEncoder().Encode(loaded.profile, loaded.symbols);
}
Text EncodeHtml(const LoadedProfile& loaded, const Request& /*request*/) {
  return HtmlEncoder().Encode(loaded.profile, loaded.symbols);
}
Text EncodeSvg(const LoadedProfile& loaded, const Request& /*request*/) {
  return SvgEncoder().Encode(loaded.profile, loaded.symbols);
}

constexpr std::array<Format, 7> kFormats{{
    {"pprof", {".pb.gz", ".pb", ".pprof"}, nullptr, true, &EncodePprof},
    {"folded", {".folded"}, nullptr, true, &EncodeFolded},
    {"speedscope", {".speedscope.json", ".json"}, nullptr, false, &EncodeSpeedscope},
    {"firefox", {".firefox.json.gz"}, "Perfetto", false, &EncodeFirefox},
    {"otlp", {".otlp"}, nullptr, false, &EncodeOtlp},
    {"html", {".html"}, nullptr, false, &EncodeHtml},
    {"svg", {".svg"}, nullptr, false, &EncodeSvg},
}};

bool Has(const Format& format, std::string_view path) {
  return std::ranges::any_of(format.suffixes, [path](const char* suffix) {
    return suffix != nullptr && path.ends_with(suffix);
  });
}

std::string Suffixes() {
  return absl::StrJoin(kFormats, ", ", [](std::string* text, const Format& format) {
    absl::StrAppend(text, format.suffixes.front());
  });
}

}  // namespace

std::span<const Format> Formats() { return kFormats; }

std::string FormatNames() {
  return absl::StrJoin(kFormats, ", ", [](std::string* text, const Format& format) {
    absl::StrAppend(text, format.name);
    if (format.also_for != nullptr) absl::StrAppend(text, " (and ", format.also_for, ")");
  });
}

absl::StatusOr<std::string> FormatOf(const Request& request) {
  if (!request.format.empty()) return request.format;
  if (request.output.empty() || request.output == "-") return std::string(kFormats.front().name);
  for (const Format& format : kFormats) {
    if (Has(format, request.output)) return std::string(format.name);
  }
  return absl::InvalidArgumentError(
      absl::StrCat(request.output, ": which format? Say it by --format, or end the name in one of ",
                   Suffixes()));
}

Text EncodeAs(std::string_view format, const LoadedProfile& loaded, const Request& request) {
  for (const Format& known : kFormats) {
    if (format == known.name) return known.encode(loaded, request);
  }
  return absl::InvalidArgumentError(absl::StrCat("which format? There are ", FormatNames()));
}

Text EncodeWhatIsLeft(std::string_view format, const LoadedProfile& loaded,
                      const Request& request) {
  const absl::StatusOr<LoadedProfile> sum = MergeProfiles(std::span(&loaded, 1));
  if (!sum.ok()) return sum.status();
  return EncodeAs(format, *sum, request);
}

Text ComparisonPage(const LoadedProfile& base, const LoadedProfile& loaded) {
  return HtmlEncoder().EncodeComparison(loaded.profile, loaded.symbols, base.profile, base.symbols);
}

}  // namespace strobe::internal
