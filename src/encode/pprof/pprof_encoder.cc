#include "strobe/encode/pprof_encoder.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "../gzip.h"
#include "../numbers.h"
#include "../profile_comments.h"
#include "../proto_writer.h"
#include "../sample_parts.h"
#include "../string_table.h"
#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pprof_fields.h"
#include "strobe/core/label_set.h"
#include "strobe/core/module_map.h"
#include "strobe/core/sample_context.h"
#include "strobe/encode/iterations.h"
#include "strobe/encode/profile_view.h"
#include "strobe/encode/short_name.h"

namespace strobe {
namespace {

// The field numbers of profile.proto; those of the message Profile are in pprof_fields.h.
using internal::ProfileField;
using enum internal::ProfileField;
enum ValueTypeField : std::uint32_t { kType = 1, kUnit };
enum SampleField : std::uint32_t { kLocationId = 1, kValue, kLabel };
enum LabelField : std::uint32_t { kKey = 1, kText, kNumber, kNumberUnit };
enum MappingField : std::uint32_t {
  kMappingId = 1,
  kStart,
  kLimit,
  kFileOffset,
  kFilename,
  kBuildId,
  kHasFunctions,
  kHasFilenames,
  kHasLineNumbers,
  kHasInlineFrames,
};
enum LocationField : std::uint32_t { kId = 1, kLocationMappingId, kAddress, kLine };
enum LineField : std::uint32_t { kLineFunctionId = 1, kLineNumber, kColumn };
enum FunctionField : std::uint32_t { kFunctionId = 1, kName, kSystemName, kFile, kStartLine };

// One encoding. The parts of the message are written one after the other. All nested messages use
// the same scratch writers.
class PprofEncoding {
 public:
  PprofEncoding(const ProfileView& view, const PprofOptions& options)
      : view_(view),
        profile_(view.profile()),
        options_(options),
        mappings_(profile_.modules.size()),
        functions_(view.function_count()) {
    if (options_.moments) parts_.emplace(profile_);
    if (options_.part) {
      columns_ = options_.part->columns;
    } else {
      for (std::size_t i = 0; i < profile_.value_types.size(); ++i) columns_.push_back(i);
    }
  }

  absl::Status Run() {
    FindUsed();
    WriteValueTypes();
    WriteLocations();
    WriteMappings();
    WriteFunctions();
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
  template <class Visitor>
  void VisitRows(Visitor&& visit) const;
  void FindUsed();
  void WriteValueType(ProfileField field, std::string_view type, std::string_view unit);
  [[nodiscard]] std::string_view NameOfColumn(std::size_t index) const;
  void WriteValueTypes();
  void WriteMappings();
  void WriteFunctions();
  void WriteLocations();
  void WriteLine(const SourceLine& line);
  void WriteHead();
  void WriteLabel(std::uint32_t key, const Label& label);
  void EncodeCommonLabels(const LabelSet& set);
  void EncodeLabelSet(const LabelSet& set);
  void EncodeLabels();
  void WriteSample(std::uint32_t sample, std::span<const std::int64_t> values,
                   std::int64_t time_ns);
  absl::Status WriteSamples();

  const ProfileView& view_;
  const Profile& profile_;
  const PprofOptions& options_;
  std::optional<internal::SampleParts> parts_;  // if moments are written
  std::vector<std::size_t> columns_;            // of the profile, that are written
  std::vector<std::uint32_t> locations_;        // the id of each frame; 0 for none
  std::vector<bool> has_labels_;                // of each label set: it is written
  internal::Numbers mappings_;
  internal::Numbers functions_;
  internal::StringTable strings_;
  internal::ProtoWriter message_;
  internal::ProtoWriter scratch_;
  internal::ProtoWriter inner_;
  internal::ProtoWriter labels_;            // of all label sets, one after the other
  std::vector<std::size_t> label_offsets_;  // of each set in labels_, and the end
};

// Calls visit(sample, values, time_ns) for each row that is written, until visit returns false. A
// sample with moments is several.
template <class Visitor>
void PprofEncoding::VisitRows(Visitor&& visit) const {
  const auto is_written = [this](std::uint32_t sample, std::span<const std::int64_t> values) {
    return !options_.part || options_.part->Has(profile_.Labels(sample), values);
  };
  if (parts_) {
    for (const internal::SamplePart& row : parts_->parts()) {
      if (is_written(row.sample, row.values) && !visit(row.sample, row.values, row.time_ns)) return;
    }
    return;
  }
  for (std::uint32_t i = 0; i < profile_.samples.size(); ++i) {
    const std::span<const std::int64_t> values = profile_.Values(i);
    if (is_written(i, values) && !visit(i, values, 0)) return;
  }
}

// All of a whole profile is used; of a part's profile, what its rows refer to.
void PprofEncoding::FindUsed() {
  locations_.assign(profile_.frames.size(), options_.part ? 0 : 1);
  has_labels_.assign(profile_.label_sets.size(), !options_.part);
  if (options_.part) {
    VisitRows([this](std::uint32_t sample, auto /*values*/, std::int64_t /*time_ns*/) {
      view_.VisitStack(sample, [this](std::uint32_t frame) { locations_[frame] = 1; });
      has_labels_[profile_.samples[sample].labels] = true;
      return true;
    });
  }
  std::uint32_t last = 0;
  for (std::uint32_t& location : locations_) {
    if (location != 0) location = ++last;
  }
}

void PprofEncoding::WriteValueType(ProfileField field, std::string_view type,
                                   std::string_view unit) {
  scratch_.Clear();
  scratch_.Field(kType, strings_.Index(type));
  scratch_.Field(kUnit, strings_.Index(unit));
  message_.Message(field, scratch_.bytes());
}

// Of a column that is written.
std::string_view PprofEncoding::NameOfColumn(std::size_t index) const {
  if (options_.part && index < options_.part->names.size() && !options_.part->names[index].empty())
    return options_.part->names[index];
  return profile_.value_types[columns_[index]].type;
}

void PprofEncoding::WriteValueTypes() {
  for (std::size_t i = 0; i < columns_.size(); ++i)
    WriteValueType(kSampleType, NameOfColumn(i), profile_.value_types[columns_[i]].unit);
}

void PprofEncoding::WriteMappings() {
  for (const std::size_t module_index : mappings_.used()) {
    const Module& module = profile_.modules[module_index];
    const ModuleSymbols& symbols = view_.SymbolsOf(module_index);
    scratch_.Clear();
    scratch_.Field(kMappingId, mappings_.Use(module_index));
    scratch_.Field(kStart, module.start);
    scratch_.Field(kLimit, module.limit);
    scratch_.Field(kFileOffset, module.file_offset);
    scratch_.Field(kFilename, strings_.Index(module.path));
    scratch_.Field(kBuildId, strings_.Index(module.build_id));
    scratch_.Field(kHasFunctions, symbols.functions ? 1 : 0);
    scratch_.Field(kHasFilenames, symbols.files ? 1 : 0);
    scratch_.Field(kHasLineNumbers, symbols.lines ? 1 : 0);
    scratch_.Field(kHasInlineFrames, symbols.lines ? 1 : 0);
    message_.Message(kMapping, scratch_.bytes());
  }
}

void PprofEncoding::WriteFunctions() {
  for (const std::size_t index : functions_.used()) {
    const FunctionName function = view_.function(index);
    scratch_.Clear();
    scratch_.Field(kFunctionId, functions_.Use(index));
    if (options_.full_names) {
      scratch_.Field(kName, strings_.Index(function.name));
      scratch_.Field(kSystemName, strings_.Index(function.system_name));
    } else {
      scratch_.Field(kName, strings_.IndexOwned(ShortFunctionName(function.name)));
      scratch_.Field(kSystemName, strings_.Index(function.name));
    }
    scratch_.Field(kFile, strings_.Index(function.file));
    scratch_.Field(kStartLine, function.line);
    message_.Message(kFunction, scratch_.bytes());
  }
}

void PprofEncoding::WriteLocations() {
  if (!profile_.modules.empty() && profile_.modules[0].kind == ModuleKind::kProgram)
    mappings_.Use(0);
  for (std::uint32_t i = 0; i < profile_.frames.size(); ++i) {
    if (locations_[i] == 0) continue;
    const Frame& frame = profile_.frames[i];
    const std::uint32_t module = view_.ModuleOf(i);
    scratch_.Clear();
    scratch_.Field(kId, locations_[i]);
    if (module != ProfileView::kNone) scratch_.Field(kLocationMappingId, mappings_.Use(module));
    if (!frame.is_pseudo()) scratch_.Field(kAddress, frame.address);
    view_.VisitLines(i, [this](const SourceLine& line) { WriteLine(line); });
    message_.Message(kLocation, scratch_.bytes());
  }
}

void PprofEncoding::WriteLine(const SourceLine& line) {
  inner_.Clear();
  inner_.Field(kLineFunctionId, functions_.Use(line.function));
  inner_.Field(kLineNumber, line.line);
  inner_.Field(kColumn, line.column);
  scratch_.Message(kLine, inner_.bytes());
}

void PprofEncoding::WriteHead() {
  message_.Field(kDropFrames, strings_.Index(options_.drop_frames));
  message_.Field(kKeepFrames, strings_.Index(options_.keep_frames));
  message_.Field(kTimeNs, static_cast<std::uint64_t>(profile_.time_ns));
  message_.Field(kDurationNs, static_cast<std::uint64_t>(profile_.duration_ns));
  if (profile_.period_type != ValueType{})
    WriteValueType(kPeriodType, profile_.period_type.type, profile_.period_type.unit);
  message_.Field(kPeriod, static_cast<std::uint64_t>(profile_.period));
  inner_.Clear();
  std::vector<std::string> comments =
      options_.comments.has_value() ? *options_.comments : internal::ProfileComments(profile_);
  if (options_.iterations > 0) comments.push_back(IterationsComment(options_.iterations));
  for (std::string& comment : comments) inner_.Varint(strings_.IndexOwned(std::move(comment)));
  message_.Bytes(kComment, inner_.bytes());
  if (!columns_.empty()) {
    const auto shown = std::ranges::find(columns_, profile_.default_value_type);
    const std::size_t index = static_cast<std::size_t>(
        (shown == columns_.end() ? std::prev(columns_.end()) : shown) - columns_.begin());
    message_.Field(kDefaultSampleType, strings_.Index(NameOfColumn(index)));
  }
}

void PprofEncoding::WriteLabel(std::uint32_t key, const Label& label) {
  scratch_.Clear();
  scratch_.Field(kKey, key);
  if (const auto* const number = std::get_if<std::int64_t>(&label.value)) {
    scratch_.Field(kNumber, static_cast<std::uint64_t>(*number));
    if (const auto unit = options_.number_units.find(label.key);
        unit != options_.number_units.end())
      scratch_.Field(kNumberUnit, strings_.Index(unit->second));
  } else {
    scratch_.Field(kText, strings_.Index(std::get<std::string>(label.value)));
  }
  labels_.Message(kLabel, scratch_.bytes());
}

// Numbers that no reader may round.
bool IsId(std::string_view key) {
  return key == kThreadIdLabel || key == kTraceIdLabel || key == kSpanIdLabel ||
         key == kLocalRootSpanIdLabel;
}

// The ids of traces in the form that tracers show, and Pyroscope expects.
std::string IdText(std::string_view key, std::int64_t id) {
  return key == kThreadIdLabel ? absl::StrCat(id) : absl::StrCat(absl::Hex(id, absl::kZeroPad16));
}

// If two keys become equal, the first is taken. A key may have several values, in a profile that
// was read from a file.
void PprofEncoding::EncodeCommonLabels(const LabelSet& set) {
  absl::flat_hash_map<std::uint32_t, std::string_view> keys;
  for (const Label& label : set.labels()) {
    std::string text = label.key;
    std::ranges::replace(text, ' ', '_');
    const std::uint32_t key = strings_.IndexOwned(std::move(text));
    if (keys.try_emplace(key, label.key).first->second != label.key) continue;
    const auto* const number = std::get_if<std::int64_t>(&label.value);
    if (number != nullptr && IsId(label.key)) {
      scratch_.Clear();
      scratch_.Field(kKey, key);
      scratch_.Field(kText, strings_.IndexOwned(IdText(label.key, *number)));
      labels_.Message(kLabel, scratch_.bytes());
    } else {
      WriteLabel(key, label);
    }
  }
}

void PprofEncoding::EncodeLabelSet(const LabelSet& set) {
  if (options_.labels == PprofLabels::kCommon) return EncodeCommonLabels(set);
  for (const Label& label : set.labels()) WriteLabel(strings_.Index(label.key), label);
}

void PprofEncoding::EncodeLabels() {
  label_offsets_.reserve(profile_.label_sets.size() + 1);
  label_offsets_.push_back(0);
  for (std::size_t i = 0; i < profile_.label_sets.size(); ++i) {
    if (has_labels_[i]) EncodeLabelSet(profile_.label_sets[i]);
    label_offsets_.push_back(labels_.size());
  }
}

void PprofEncoding::WriteSample(std::uint32_t sample, std::span<const std::int64_t> values,
                                std::int64_t time_ns) {
  inner_.Clear();
  view_.VisitStack(sample, [this](std::uint32_t frame) { inner_.Varint(locations_[frame]); });
  scratch_.Clear();
  scratch_.Bytes(kLocationId, inner_.bytes());
  inner_.Clear();
  for (const std::size_t column : columns_)
    inner_.Varint(static_cast<std::uint64_t>(values[column]));
  scratch_.Bytes(kValue, inner_.bytes());
  const std::size_t set = profile_.samples[sample].labels;
  scratch_.Raw(
      labels_.bytes().substr(label_offsets_[set], label_offsets_[set + 1] - label_offsets_[set]));
  if (time_ns != 0) {
    inner_.Clear();
    inner_.Field(kKey, strings_.Index("end_timestamp_ns"));
    inner_.Field(kNumber, static_cast<std::uint64_t>(time_ns));
    scratch_.Message(kLabel, inner_.bytes());
  }
  message_.Message(kSample, scratch_.bytes());
}

absl::Status PprofEncoding::WriteSamples() {
  VisitRows(
      [this](std::uint32_t sample, std::span<const std::int64_t> values, std::int64_t time_ns) {
        WriteSample(sample, values, time_ns);
        return message_.size() <= PprofEncoder::kMaxMessageBytes;
      });
  return message_.size() <= PprofEncoder::kMaxMessageBytes ? absl::OkStatus() : TooLong();
}

}  // namespace

absl::StatusOr<std::string> PprofEncoder::Encode(const ProfileView& view) {
  absl::StatusOr<std::string> message = EncodeUncompressed(view);
  if (!message.ok()) return message;
  return internal::Gzip(*message);
}

absl::StatusOr<std::string> PprofEncoder::Encode(const Profile& profile, const Symbols& symbols) {
  const absl::StatusOr<ProfileView> view = ProfileView::Make(profile, symbols);
  return view.ok() ? Encode(*view) : view.status();
}

absl::StatusOr<std::string> PprofEncoder::EncodeUncompressed(const Profile& profile,
                                                             const Symbols& symbols) {
  const absl::StatusOr<ProfileView> view = ProfileView::Make(profile, symbols);
  return view.ok() ? EncodeUncompressed(*view) : view.status();
}

absl::StatusOr<std::string> PprofEncoder::EncodeUncompressed(const ProfileView& view) {
  const std::size_t columns = view.profile().value_types.size();
  if (options_.part && std::ranges::any_of(options_.part->columns,
                                           [&](std::size_t column) { return column >= columns; }))
    return absl::InvalidArgumentError("the profile has no such column");
  PprofEncoding encoding(view, options_);
  if (absl::Status status = encoding.Run(); !status.ok()) return status;
  return encoding.Take();
}

}  // namespace strobe
