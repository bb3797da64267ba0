#include "strobe/encode/pprof_encoder.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gzip.h"
#include "profile_comments.h"
#include "proto_writer.h"
#include "strobe/core/thread_info.h"
#include "strobe/encode/profile_view.h"

namespace strobe {
namespace {

// The field numbers of profile.proto.
enum ProfileField : std::uint32_t {
  kSampleType = 1,
  kSample,
  kMapping,
  kLocation,
  kFunction,
  kStringTable,
  kTimeNs = 9,
  kDurationNs,
  kPeriodType,
  kPeriod,
  kComment,
  kDefaultSampleType,
};
enum ValueTypeField : std::uint32_t { kType = 1, kUnit };
enum SampleField : std::uint32_t { kLocationId = 1, kValue, kLabel };
enum LabelField : std::uint32_t { kKey = 1, kText, kNumber };
enum MappingField : std::uint32_t {
  kMappingId = 1,
  kStart,
  kLimit,
  kFileOffset,
  kFilename,
  kBuildId,
  kHasFunctions
};
enum LocationField : std::uint32_t { kId = 1, kLocationMappingId, kAddress, kLine };
enum LineField : std::uint32_t { kLineFunctionId = 1 };
enum FunctionField : std::uint32_t { kFunctionId = 1, kName, kSystemName };

// Each distinct string once, numbered in the order of first use; 0 is the empty string.
class StringTable {
 public:
  // `text` must outlive the table.
  std::uint64_t Index(std::string_view text) {
    if (text.empty()) return 0;
    const bool is_ascii = std::all_of(text.begin(), text.end(),
                                      [](char c) { return static_cast<unsigned char>(c) < 0x80; });
    if (is_ascii) return Insert(text);
    return Insert(owned_.emplace_back(ValidUtf8(text)));
  }

  std::uint64_t IndexOwned(std::string text) { return Index(owned_.emplace_back(std::move(text))); }

  // Strings in the order of their numbers.
  [[nodiscard]] const std::vector<std::string_view>& strings() const { return strings_; }

 private:
  std::uint64_t Insert(std::string_view text) {
    const auto [entry, inserted] = indices_.try_emplace(text, strings_.size());
    if (inserted) strings_.push_back(text);
    return entry->second;
  }

  std::unordered_map<std::string_view, std::uint64_t> indices_;  // an insertion may throw
  std::vector<std::string_view> strings_{""};
  std::deque<std::string> owned_;  // a deque does not move its elements
};

// One encoding. The parts of the message are written one after the other. All nested messages use
// the same scratch writers.
class Encoding {
 public:
  explicit Encoding(const ProfileView& view) : view_(view), profile_(view.profile()) {}

  absl::Status Run() {
    WriteValueTypes();
    WriteMappings();
    WriteFunctions();
    WriteLocations();
    WriteHead();
    EncodeLabels();
    if (absl::Status status = WriteSamples(); !status.ok()) return status;
    for (const std::string_view text : strings_.strings()) message_.Message(kStringTable, text);
    if (message_.size() > PprofEncoder::kMaxMessageBytes) return TooLong();
    return absl::OkStatus();
  }

  [[nodiscard]] std::string Take() { return message_.Take(); }

 private:
  static absl::Status TooLong() {
    return absl::OutOfRangeError("the profile is too long for the pprof format");
  }
  void WriteValueType(ProfileField field, const ValueType& value_type);
  void WriteValueTypes();
  void WriteMappings();
  void WriteFunctions();
  void WriteLocations();
  void WriteHead();
  void EncodeLabels();
  absl::Status WriteSamples();

  const ProfileView& view_;
  const Profile& profile_;
  StringTable strings_;
  internal::ProtoWriter message_;
  internal::ProtoWriter scratch_;
  internal::ProtoWriter inner_;
  internal::ProtoWriter labels_;            // of all label sets, one after the other
  std::vector<std::size_t> label_offsets_;  // of each set in labels_, and the end
};

void Encoding::WriteValueType(ProfileField field, const ValueType& value_type) {
  scratch_.Clear();
  scratch_.Field(kType, strings_.Index(value_type.type));
  scratch_.Field(kUnit, strings_.Index(value_type.unit));
  message_.Message(field, scratch_.bytes());
}

void Encoding::WriteValueTypes() {
  for (const ValueType& value_type : profile_.value_types) WriteValueType(kSampleType, value_type);
}

void Encoding::WriteMappings() {
  for (std::size_t i = 0; i < profile_.modules.size(); ++i) {
    const Module& module = profile_.modules[i];
    scratch_.Clear();
    scratch_.Field(kMappingId, i + 1);
    scratch_.Field(kStart, module.start);
    scratch_.Field(kLimit, module.limit);
    scratch_.Field(kFileOffset, module.file_offset);
    scratch_.Field(kFilename, strings_.Index(module.path));
    scratch_.Field(kBuildId, strings_.Index(module.build_id));
    scratch_.Field(kHasFunctions, view_.IsNamed(i) ? 1 : 0);
    message_.Message(kMapping, scratch_.bytes());
  }
}

void Encoding::WriteFunctions() {
  for (std::size_t i = 0; i < view_.function_count(); ++i) {
    const FunctionName function = view_.function(i);
    scratch_.Clear();
    scratch_.Field(kFunctionId, i + 1);
    scratch_.Field(kName, strings_.Index(function.name));
    scratch_.Field(kSystemName, strings_.Index(function.system_name));
    message_.Message(kFunction, scratch_.bytes());
  }
}

void Encoding::WriteLocations() {
  for (std::uint32_t i = 0; i < profile_.frames.size(); ++i) {
    const Frame& frame = profile_.frames[i];
    const std::uint32_t module = view_.ModuleOf(i);
    const std::uint32_t function = view_.FunctionOf(i);
    scratch_.Clear();
    scratch_.Field(kId, std::uint64_t{i} + 1);
    if (module != ProfileView::kNone) scratch_.Field(kLocationMappingId, std::uint64_t{module} + 1);
    if (!frame.is_pseudo()) scratch_.Field(kAddress, frame.address);
    if (function != ProfileView::kNone) {
      inner_.Clear();
      inner_.Field(kLineFunctionId, std::uint64_t{function} + 1);
      scratch_.Message(kLine, inner_.bytes());
    }
    message_.Message(kLocation, scratch_.bytes());
  }
}

void Encoding::WriteHead() {
  message_.Field(kTimeNs, static_cast<std::uint64_t>(profile_.time_ns));
  message_.Field(kDurationNs, static_cast<std::uint64_t>(profile_.duration_ns));
  if (profile_.period_type != ValueType{}) WriteValueType(kPeriodType, profile_.period_type);
  message_.Field(kPeriod, static_cast<std::uint64_t>(profile_.period));
  inner_.Clear();
  for (std::string& comment : internal::ProfileComments(profile_))
    inner_.Varint(strings_.IndexOwned(std::move(comment)));
  message_.Bytes(kComment, inner_.bytes());
  if (!profile_.value_types.empty()) {
    message_.Field(kDefaultSampleType,
                   strings_.Index(profile_.value_types[profile_.default_value_type].type));
  }
}

void Encoding::EncodeLabels() {
  label_offsets_.reserve(profile_.label_sets.size() + 1);
  label_offsets_.push_back(0);
  for (const LabelSet& set : profile_.label_sets) {
    for (const Label& label : set.labels()) {
      scratch_.Clear();
      scratch_.Field(kKey, strings_.Index(label.key));
      if (const auto* const number = std::get_if<std::int64_t>(&label.value)) {
        scratch_.Field(kNumber, static_cast<std::uint64_t>(*number));
      } else {
        scratch_.Field(kText, strings_.Index(std::get<std::string>(label.value)));
      }
      labels_.Message(kLabel, scratch_.bytes());
    }
    label_offsets_.push_back(labels_.size());
  }
}

absl::Status Encoding::WriteSamples() {
  for (std::size_t i = 0; i < profile_.samples.size(); ++i) {
    inner_.Clear();
    view_.VisitStack(i, [this](std::uint32_t frame) { inner_.Varint(std::uint64_t{frame} + 1); });
    scratch_.Clear();
    scratch_.Bytes(kLocationId, inner_.bytes());
    inner_.Clear();
    for (const std::int64_t value : profile_.Values(i))
      inner_.Varint(static_cast<std::uint64_t>(value));
    scratch_.Bytes(kValue, inner_.bytes());
    const std::size_t set = profile_.samples[i].labels;
    scratch_.Raw(
        labels_.bytes().substr(label_offsets_[set], label_offsets_[set + 1] - label_offsets_[set]));
    message_.Message(kSample, scratch_.bytes());
    if (message_.size() > PprofEncoder::kMaxMessageBytes) return TooLong();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> PprofEncoder::Encode(const Profile& profile, const Symbols& symbols) {
  absl::StatusOr<std::string> message = EncodeUncompressed(profile, symbols);
  if (!message.ok()) return message;
  return internal::Gzip(*message);
}

absl::StatusOr<std::string> PprofEncoder::EncodeUncompressed(const Profile& profile,
                                                             const Symbols& symbols) {
  const absl::StatusOr<ProfileView> view = ProfileView::Make(profile, symbols);
  if (!view.ok()) return view.status();
  Encoding encoding(*view);
  if (absl::Status status = encoding.Run(); !status.ok()) return status;
  return encoding.Take();
}

}  // namespace strobe
