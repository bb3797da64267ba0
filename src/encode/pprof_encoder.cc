#include "strobe/encode/pprof_encoder.h"

#include <algorithm>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "gzip.h"
#include "profile_comments.h"
#include "proto_writer.h"
#include "strobe/core/stack.h"
#include "strobe/core/thread_info.h"

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
    const auto [entry, inserted] =
        indices_.try_emplace(absl::string_view(text.data(), text.size()), strings_.size());
    if (inserted) strings_.push_back(text);
    return entry->second;
  }

  absl::flat_hash_map<absl::string_view, std::uint64_t> indices_;
  std::vector<std::string_view> strings_{""};
  std::deque<std::string> owned_;  // a deque does not move its elements
};

// One encoding. The parts of the message are written one after the other; scratch writers are
// reused for all of its nested messages.
class Encoding {
 public:
  Encoding(const Profile& profile, const Symbols& symbols) : profile_(profile), symbols_(symbols) {}

  absl::Status Run() {
    if (absl::Status status = CheckTables(); !status.ok()) return status;
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

  [[nodiscard]] std::string_view bytes() const { return message_.bytes(); }
  [[nodiscard]] std::string Take() { return message_.Take(); }

 private:
  static absl::Status TooLong() {
    return absl::OutOfRangeError("the profile is too long for the pprof format");
  }
  static absl::Status OutOfRange(absl::string_view what, std::size_t index) {
    return absl::InvalidArgumentError(
        absl::StrCat("profile: ", what, " ", index, " refers to something that does not exist"));
  }

  absl::Status CheckTables() const;
  void WriteValueType(ProfileField field, const ValueType& value_type);
  void WriteValueTypes();
  void WriteMappings();
  void WriteFunctions();
  void WriteFunction(std::uint64_t id, std::uint64_t name, std::uint64_t system_name);
  std::uint64_t PseudoFunction(Address address);
  void WriteLocations();
  void WriteHead();
  void EncodeLabels();
  absl::Status WriteSamples();

  // The function of frame `index`, an index into Symbols::functions, or kNone.
  [[nodiscard]] std::uint32_t FunctionOf(std::size_t index) const {
    return symbols_.frames.empty() || profile_.frames[index].is_pseudo()
               ? FrameSymbols::kNone
               : symbols_.frames[index].function;
  }

  const Profile& profile_;
  const Symbols& symbols_;
  StringTable strings_;
  internal::ProtoWriter message_;
  internal::ProtoWriter scratch_;
  internal::ProtoWriter inner_;
  std::vector<std::pair<std::uint64_t, std::uint64_t>>
      pseudo_functions_;                    // index of the name, function id; a handful
  internal::ProtoWriter labels_;            // of all threads, one after the other
  std::vector<std::size_t> label_offsets_;  // of each thread in labels_, and the end
};

// Samples and stacks are checked as they are walked.
absl::Status Encoding::CheckTables() const {
  if (!symbols_.frames.empty() && symbols_.frames.size() != profile_.frames.size()) {
    return absl::InvalidArgumentError(absl::StrCat("symbols for ", symbols_.frames.size(),
                                                   " frames of a profile with ",
                                                   profile_.frames.size()));
  }
  if (profile_.values.size() != profile_.samples.size() * profile_.value_types.size()) {
    return absl::InvalidArgumentError(absl::StrCat("profile: ", profile_.values.size(),
                                                   " values for ", profile_.samples.size(),
                                                   " samples of ", profile_.value_types.size()));
  }
  if (!profile_.value_types.empty() && profile_.default_value_type >= profile_.value_types.size()) {
    return OutOfRange("default value type", profile_.default_value_type);
  }
  for (std::size_t i = 0; i < profile_.frames.size(); ++i) {
    const Frame& frame = profile_.frames[i];
    if (frame.module >= profile_.modules.size() && frame.module != Frame::kNoModule &&
        !frame.is_pseudo())
      return OutOfRange("frame", i);
    const std::uint32_t function = FunctionOf(i);
    if (function >= symbols_.functions.size() && function != FrameSymbols::kNone)
      return OutOfRange("symbol of frame", i);
  }
  return absl::OkStatus();
}

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
  const std::size_t count = profile_.modules.size();
  std::vector<bool> used(count), unresolved(count);
  for (std::size_t i = 0; i < profile_.frames.size(); ++i) {
    const std::uint32_t module = profile_.frames[i].module;
    if (module >= count) continue;
    used[module] = true;
    const std::uint32_t function = FunctionOf(i);
    if (function == FrameSymbols::kNone || !symbols_.functions[function].resolved)
      unresolved[module] = true;
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Module& module = profile_.modules[i];
    scratch_.Clear();
    scratch_.Field(kMappingId, i + 1);
    scratch_.Field(kStart, module.start);
    scratch_.Field(kLimit, module.limit);
    scratch_.Field(kFileOffset, module.file_offset);
    scratch_.Field(kFilename, strings_.Index(module.path));
    scratch_.Field(kBuildId, strings_.Index(module.build_id));
    scratch_.Field(kHasFunctions, used[i] && !unresolved[i] ? 1 : 0);
    message_.Message(kMapping, scratch_.bytes());
  }
}

void Encoding::WriteFunction(std::uint64_t id, std::uint64_t name, std::uint64_t system_name) {
  scratch_.Clear();
  scratch_.Field(kFunctionId, id);
  scratch_.Field(kName, name);
  scratch_.Field(kSystemName, system_name);
  message_.Message(kFunction, scratch_.bytes());
}

void Encoding::WriteFunctions() {
  for (std::size_t i = 0; i < symbols_.functions.size(); ++i) {
    const FunctionSymbol& function = symbols_.functions[i];
    WriteFunction(i + 1, strings_.Index(function.name), strings_.Index(function.system_name));
  }
}

std::uint64_t Encoding::PseudoFunction(Address address) {
  const std::string_view name =
      PseudoFrameName(static_cast<PseudoFrame>(std::min<Address>(address, kPseudoFrameCount)));
  const std::uint64_t index = strings_.Index(name);
  for (const auto& [known, id] : pseudo_functions_) {
    if (known == index) return id;
  }
  const std::uint64_t id = symbols_.functions.size() + pseudo_functions_.size() + 1;
  WriteFunction(id, index, index);
  pseudo_functions_.emplace_back(index, id);
  return id;
}

void Encoding::WriteLocations() {
  for (std::size_t i = 0; i < profile_.frames.size(); ++i) {
    const Frame& frame = profile_.frames[i];
    const std::uint32_t function = FunctionOf(i);
    std::uint64_t function_id = function == FrameSymbols::kNone ? 0 : std::uint64_t{function} + 1;
    if (frame.is_pseudo()) function_id = PseudoFunction(frame.address);
    scratch_.Clear();
    scratch_.Field(kId, i + 1);
    if (!frame.is_pseudo()) {
      if (frame.module != Frame::kNoModule) {
        const Module& module = profile_.modules[frame.module];
        const bool is_inside = frame.address >= module.start && frame.address < module.limit;
        scratch_.Field(kLocationMappingId, is_inside ? std::uint64_t{frame.module} + 1 : 0);
      }
      scratch_.Field(kAddress, frame.address);
    }
    if (function_id != 0) {
      inner_.Clear();
      inner_.Field(kLineFunctionId, function_id);
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
  const std::uint64_t id_key = strings_.Index("thread id");
  const std::uint64_t name_key = strings_.Index("thread name");
  label_offsets_.reserve(profile_.threads.size() + 1);
  label_offsets_.push_back(0);
  for (const ProfileThread& thread : profile_.threads) {
    scratch_.Clear();
    scratch_.Field(kKey, id_key);
    scratch_.Field(kNumber, thread.id);
    labels_.Message(kLabel, scratch_.bytes());
    if (!thread.name.empty()) {
      scratch_.Clear();
      scratch_.Field(kKey, name_key);
      scratch_.Field(kText, strings_.Index(thread.name));
      labels_.Message(kLabel, scratch_.bytes());
    }
    label_offsets_.push_back(labels_.size());
  }
}

absl::Status Encoding::WriteSamples() {
  for (std::size_t i = 0; i < profile_.samples.size(); ++i) {
    const ProfileSample& sample = profile_.samples[i];
    if (sample.stack >= profile_.stacks.size() || sample.thread >= profile_.threads.size())
      return OutOfRange("sample", i);
    inner_.Clear();
    for (std::uint32_t node = sample.stack; node != 0;) {
      const StackNode& step = profile_.stacks[node];
      // A parent stands before its children, so the walk ends whatever the tree says.
      if (step.parent >= node || step.frame >= profile_.frames.size())
        return OutOfRange("stack", node);
      inner_.Varint(std::uint64_t{step.frame} + 1);
      node = step.parent;
    }
    scratch_.Clear();
    scratch_.Bytes(kLocationId, inner_.bytes());
    inner_.Clear();
    for (const std::int64_t value : profile_.Values(i))
      inner_.Varint(static_cast<std::uint64_t>(value));
    scratch_.Bytes(kValue, inner_.bytes());
    const std::size_t labels = label_offsets_[sample.thread];
    scratch_.Raw(labels_.bytes().substr(labels, label_offsets_[sample.thread + 1] - labels));
    message_.Message(kSample, scratch_.bytes());
    if (message_.size() > PprofEncoder::kMaxMessageBytes) return TooLong();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> PprofEncoder::Encode(const Profile& profile, const Symbols& symbols) {
  Encoding encoding(profile, symbols);
  if (absl::Status status = encoding.Run(); !status.ok()) return status;
  return internal::Gzip(encoding.bytes());
}

absl::StatusOr<std::string> PprofEncoder::EncodeUncompressed(const Profile& profile,
                                                             const Symbols& symbols) {
  Encoding encoding(profile, symbols);
  if (absl::Status status = encoding.Run(); !status.ok()) return status;
  return encoding.Take();
}

}  // namespace strobe
