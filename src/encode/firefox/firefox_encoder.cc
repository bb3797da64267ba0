#include "strobe/encode/firefox_encoder.h"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "../gzip.h"
#include "../json_writer.h"
#include "../profile_comments.h"
#include "../row_texts.h"
#include "../sample_parts.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "firefox_tables.h"
#include "firefox_threads.h"
#include "strobe/encode/profile_view.h"

namespace strobe {
namespace {

std::string_view WeightType(const ValueType& value_type) {
  if (value_type.unit == "nanoseconds") return internal::kFirefoxMilliseconds;
  return value_type.unit == "bytes" ? "bytes" : "samples";
}

std::optional<std::size_t> CpuColumn(const Profile& profile) {
  for (std::size_t i = 0; i < profile.value_types.size(); ++i) {
    if (profile.value_types[i] == ValueType{"cpu", "nanoseconds"}) return i;
  }
  return std::nullopt;
}

// Wraps around for a hostile profile.
std::int64_t SumOf(const Profile& profile, std::size_t column) {
  std::uint64_t sum = 0;
  for (std::size_t i = 0; i < profile.samples.size(); ++i)
    sum += static_cast<std::uint64_t>(profile.Values(i)[column]);
  return static_cast<std::int64_t>(sum);
}

// If false, a viewer looks for symbols by itself.
bool HasNames(const ProfileView& view) {
  for (std::uint32_t i = 0; i < view.profile().frames.size(); ++i) {
    if (!view.profile().frames[i].is_pseudo() && view.FunctionOf(i) != ProfileView::kNone)
      return true;
  }
  return false;
}

class FirefoxEncoding {
 public:
  FirefoxEncoding(const ProfileView& view, std::size_t column)
      : view_(view),
        profile_(view.profile()),
        tables_(view),
        columns_{.weight = column, .cpu = CpuColumn(view.profile())} {}

  absl::StatusOr<std::string> Run() {
    const internal::JsonWriter threads = Threads();
    json_.BeginObject();
    json_.Key("meta");
    WriteMeta();
    json_.Key("libs");
    tables_.WriteLibraries(json_);
    json_.Key("shared");
    tables_.WriteShared(json_);
    json_.Key("threads");
    json_.Raw(threads.text());
    json_.EndObject();
    if (json_.size() > FirefoxEncoder::kMaxBytes)
      return absl::OutOfRangeError("the profile is too long for the Firefox Profiler");
    return json_.Take();
  }

 private:
  // The texts of markers are part of the shared tables, so the threads come first.
  internal::JsonWriter Threads() {
    internal::JsonWriter json;
    json.BeginArray();
    const internal::SampleParts parts(profile_);
    // A profile without value types has no amounts to show.
    if (!profile_.value_types.empty()) {
      const std::string_view weight_type = WeightType(profile_.value_types[columns_.weight]);
      for (const internal::ThreadParts& thread : internal::PartsByThread(profile_, parts)) {
        const auto samples = internal::FirefoxSamples(profile_, tables_, thread, columns_);
        internal::WriteFirefoxThread(json, profile_, tables_, thread, samples, weight_type);
        if (json.size() > FirefoxEncoder::kMaxBytes) break;
      }
    }
    json.EndArray();
    return json;
  }

  void WriteMeta() {
    json_.BeginObject();
    json_.Key("interval");
    json_.Millionths(profile_.period_type.unit == "nanoseconds" ? profile_.period : 1'000'000);
    json_.Key("startTime");
    json_.Millionths(profile_.time_ns);
    json_.Member("processType", std::int64_t{0});
    json_.Member("product", profile_.program);
    json_.Member("importedFrom", "Strobe");
    json_.Member("stackwalk", std::int64_t{1});
    json_.Member("debug", false);
    json_.Member("version", std::int64_t{24});  // of the browser's own format
    json_.Member("preprocessedProfileVersion", std::int64_t{FirefoxEncoder::kFormatVersion});
    json_.Member("symbolicated", HasNames(view_));
    json_.Member("usesOnlyOneStackType", true);
    json_.Member("sourceCodeIsNotOnSearchfox", true);
    json_.Member("keepProfileThreadOrder", true);
    json_.Key("extensions");
    json_.Raw(R"({"baseURL":[],"id":[],"name":[],"length":0})");
    json_.Key("sampleUnits");
    json_.Raw(R"({"time":"ms","eventDelay":"ms","threadCPUDelta":"ns"})");
    json_.Key("categories");
    internal::FirefoxTables::WriteCategories(json_);
    json_.Key("markerSchema");
    internal::WriteFirefoxMarkerSchemas(json_);
    json_.Key("extra");
    WriteAccount();
    json_.EndObject();
  }

  void WriteAccount() {
    json_.BeginArray();
    json_.BeginObject();
    json_.Member("label", "Strobe");
    json_.Key("entries");
    json_.BeginArray();
    for (std::size_t i = 0; i < profile_.value_types.size(); ++i) {
      const ValueType& value_type = profile_.value_types[i];
      WriteEntry(absl::StrCat("Sum of ", std::string(value_type.type)),
                 absl::StrCat(SumOf(profile_, i), " ", std::string(value_type.unit)));
    }
    for (const std::string& comment : internal::ProfileComments(profile_))
      WriteEntry("Account", comment);
    json_.EndArray();
    json_.EndObject();
    json_.EndArray();
  }
  void WriteEntry(std::string_view label, std::string_view value) {
    json_.BeginObject();
    json_.Member("label", label);
    json_.Member("format", "string");
    json_.Member("value", value);
    json_.EndObject();
  }

  const ProfileView& view_;
  const Profile& profile_;
  internal::FirefoxTables tables_;
  internal::FirefoxColumns columns_;
  internal::JsonWriter json_;
};

}  // namespace

FirefoxEncoder::FirefoxEncoder(FirefoxOptions options) : options_(std::move(options)) {}

absl::StatusOr<std::string> FirefoxEncoder::Encode(const Profile& profile, const Symbols& symbols) {
  absl::StatusOr<std::string> text = EncodeUncompressed(profile, symbols);
  if (!text.ok()) return text;
  return internal::Gzip(*text);
}

absl::StatusOr<std::string> FirefoxEncoder::EncodeUncompressed(const Profile& profile,
                                                               const Symbols& symbols) {
  const absl::StatusOr<ProfileView> view = ProfileView::Make(profile, symbols);
  if (!view.ok()) return view.status();
  const absl::StatusOr<std::size_t> column =
      internal::FindColumn(profile, options_.value_type, profile.default_value_type);
  if (!column.ok()) return column.status();
  return FirefoxEncoding(*view, *column).Run();
}

}  // namespace strobe
