#include "strobe/encode/otlp_encoder.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <unordered_map>
#include <variant>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "numbers.h"
#include "proto_writer.h"
#include "string_table.h"
#include "strobe/core/label_set.h"
#include "strobe/core/module_map.h"
#include "strobe/core/thread_info.h"
#include "strobe/encode/machine_tags.h"
#include "strobe/encode/profile_view.h"
#include "strobe/encode/short_name.h"

namespace strobe {
namespace {

using internal::ProtoWriter;

// The field numbers of OpenTelemetry's profiles, release 1.10 of opentelemetry-proto: package
// opentelemetry.proto.profiles.v1development, and what it uses of resource.v1 and common.v1. The
// encoder knows the messages by this table alone. It has only the fields that are written.
struct Fields {
  enum Request : std::uint32_t { kResourceProfiles = 1, kDictionary = 2 };
  enum Dictionary : std::uint32_t {
    kMappings = 1,
    kLocations = 2,
    kFunctions = 3,
    kLinks = 4,
    kStrings = 5,
    kAttributes = 6,
    kStacks = 7,
  };
  enum ResourceProfiles : std::uint32_t { kResource = 1, kScopeProfiles = 2 };
  enum Resource : std::uint32_t { kResourceAttributes = 1 };
  // Of opentelemetry.proto.processcontext.v1development.
  enum ProcessContext : std::uint32_t { kContextResource = 1 };
  enum ScopeProfiles : std::uint32_t { kScope = 1, kProfiles = 2 };
  enum Scope : std::uint32_t { kScopeName = 1 };
  enum Profile : std::uint32_t {
    kSampleType = 1,
    kSamples = 2,
    kTimeNs = 3,  // fixed64
    kDurationNs = 4,
    kPeriodType = 5,
    kPeriod = 6,
  };
  enum ValueType : std::uint32_t { kType = 1, kUnit = 2 };
  enum Sample : std::uint32_t { kStack = 1, kSampleAttributes = 2, kValues = 4 };
  enum Mapping : std::uint32_t {
    kStart = 1,
    kLimit = 2,
    kFileOffset = 3,
    kFilename = 4,
    kMappingAttributes = 5,
  };
  enum Stack : std::uint32_t { kStackLocations = 1 };
  enum Location : std::uint32_t {
    kMapping = 1,
    kAddress = 2,
    kLines = 3,
    kLocationAttributes = 4,
  };
  enum Line : std::uint32_t { kFunction = 1, kLine = 2, kColumn = 3 };
  enum Function : std::uint32_t { kName = 1, kSystemName = 2, kFile = 3, kStartLine = 4 };
  enum KeyValueAndUnit : std::uint32_t { kTableKey = 1, kTableValue = 2 };
  enum KeyValue : std::uint32_t { kKey = 1, kValue = 2 };
  enum AnyValue : std::uint32_t { kText = 1, kInteger = 3 };
};

std::string_view AttributeKey(const Label& label) {
  if (label.key == kThreadIdLabel) return "thread.id";
  return label.key == kThreadNameLabel ? "thread.name" : std::string_view(label.key);
}

// OpenTelemetry has names of its own for architectures.
std::variant<std::int64_t, std::string> AttributeValue(const Label& machine_tag) {
  const auto* const text = std::get_if<std::string>(&machine_tag.value);
  if (machine_tag.key != "architecture" || text == nullptr) return machine_tag.value;
  if (*text == "x86_64") return std::string("amd64");
  return *text == "aarch64" ? std::string("arm64") : *text;
}

// Writes an AnyValue. An empty text is a value, too.
void WriteValue(ProtoWriter& value, const std::variant<std::int64_t, std::string>& content) {
  if (const auto* const number = std::get_if<std::int64_t>(&content)) {
    value.Present(Fields::kInteger, static_cast<std::uint64_t>(*number));
  } else {
    value.Message(Fields::kText, ValidUtf8(std::get<std::string>(content)));
  }
}

// The entries of a table, each a message: distinct, and numbered from 1.
class Entries {
 public:
  std::uint32_t Add(std::string_view entry) {
    const auto next = static_cast<std::uint32_t>(entries_.size() + 1);
    const auto [place, is_new] = numbers_.try_emplace(std::string(entry), next);
    if (is_new) entries_.push_back(&place->first);
    return place->second;
  }

  void Write(ProtoWriter& message, std::uint32_t field) const {
    message.Message(field, "");  // entry 0
    for (const std::string* entry : entries_) message.Message(field, *entry);
  }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<const std::string*> entries_;  // in the map, which does not move its elements
};

// The tables that all profiles share, filled as samples use them.
class Dictionary {
 public:
  explicit Dictionary(const ProfileView& view)
      : view_(view),
        mapping_numbers_(view.profile().modules.size(), 0),
        location_numbers_(view.profile().frames.size(), 0),
        function_numbers_(view.function_count(), 0),
        stacks_(std::max<std::size_t>(view.profile().stacks.size(), 1)) {}

  std::uint32_t Text(std::string_view text) { return strings_.Index(text); }
  // The number of a node's stack, from the leaf to the root. Without frames it is 0: none.
  std::uint32_t Stack(std::uint32_t node) { return node == 0 ? 0 : stacks_.Use(node); }
  std::uint32_t Attribute(std::string_view key,
                          const std::variant<std::int64_t, std::string>& content) {
    ProtoWriter value;
    WriteValue(value, content);
    ProtoWriter attribute;
    attribute.Field(Fields::kTableKey, strings_.IndexOwned(std::string(key)));
    attribute.Message(Fields::kTableValue, value.bytes());
    return attributes_.Add(attribute.bytes());
  }

  // Writes the message. The stacks come first, because they number the rest.
  absl::Status Write(ProtoWriter& message) {
    message.Message(Fields::kStacks, "");
    for (const std::size_t node : stacks_.used()) {
      WriteStack(message, node);
      if (message.size() > OtlpEncoder::kMaxMessageBytes)
        return absl::OutOfRangeError("the profile is too long for OTLP");
    }
    locations_.Write(message, Fields::kLocations);
    mappings_.Write(message, Fields::kMappings);
    functions_.Write(message, Fields::kFunctions);
    message.Message(Fields::kLinks, "");
    attributes_.Write(message, Fields::kAttributes);
    for (const std::string_view text : strings_.strings()) message.Message(Fields::kStrings, text);
    return absl::OkStatus();
  }

 private:
  void WriteStack(ProtoWriter& message, std::size_t node) {
    ProtoWriter& locations = scratch_[0];
    locations.Clear();
    for (std::size_t i = node; i != 0; i = view_.profile().stacks[i].parent)
      locations.Varint(Location(view_.profile().stacks[i].frame));
    ProtoWriter& stack = scratch_[1];
    stack.Clear();
    stack.Bytes(Fields::kStackLocations, locations.bytes());
    message.Message(Fields::kStacks, stack.bytes());
  }

  std::uint32_t Location(std::uint32_t frame) {
    std::uint32_t& number = location_numbers_[frame];
    if (number != 0) return number;
    const Frame& place = view_.profile().frames[frame];
    ProtoWriter& location = scratch_[2];
    location.Clear();
    location.Field(Fields::kMapping, Mapping(view_.ModuleOf(frame)));
    if (!place.is_pseudo()) location.Field(Fields::kAddress, place.address);
    view_.VisitLines(frame, [&](const SourceLine& source) {
      ProtoWriter& line = scratch_[3];
      line.Clear();
      line.Field(Fields::kFunction, Function(source.function));
      line.Field(Fields::kLine, source.line);
      line.Field(Fields::kColumn, source.column);
      location.Message(Fields::kLines, line.bytes());
    });
    WriteAttribute(location, Fields::kLocationAttributes,
                   Attribute("profile.frame.type", std::string("native")));
    return number = locations_.Add(location.bytes());
  }

  std::uint32_t Mapping(std::uint32_t index) {
    if (index == ProfileView::kNone) return 0;
    std::uint32_t& number = mapping_numbers_[index];
    if (number != 0) return number;
    const Module& module = view_.profile().modules[index];
    ProtoWriter& mapping = scratch_[3];
    mapping.Clear();
    mapping.Field(Fields::kStart, module.start);
    mapping.Field(Fields::kLimit, module.limit);
    mapping.Field(Fields::kFileOffset, module.file_offset);
    mapping.Field(Fields::kFilename, Text(module.path));
    if (module.format == ImageFormat::kElf && !module.build_id.empty()) {
      WriteAttribute(mapping, Fields::kMappingAttributes,
                     Attribute("process.executable.build_id.gnu", module.build_id));
    }
    return number = mappings_.Add(mapping.bytes());
  }

  std::uint32_t Function(std::uint32_t index) {
    std::uint32_t& number = function_numbers_[index];
    if (number != 0) return number;
    const FunctionName name = view_.function(index);
    ProtoWriter& function = scratch_[4];
    function.Clear();
    function.Field(Fields::kName, strings_.IndexOwned(ShortFunctionName(name.name)));
    function.Field(Fields::kSystemName, Text(name.name));
    function.Field(Fields::kFile, Text(name.file));
    function.Field(Fields::kStartLine, name.line);
    return number = functions_.Add(function.bytes());
  }

  void WriteAttribute(ProtoWriter& message, std::uint32_t field, std::uint32_t attribute) {
    ProtoWriter& packed = scratch_[4];
    packed.Clear();
    packed.Varint(attribute);
    message.Bytes(field, packed.bytes());
  }

  const ProfileView& view_;
  std::vector<std::uint32_t> mapping_numbers_;   // of each module, 0 before its first use
  std::vector<std::uint32_t> location_numbers_;  // of each frame
  std::vector<std::uint32_t> function_numbers_;  // of each function
  internal::Numbers stacks_;                     // of nodes
  Entries mappings_;
  Entries locations_;
  Entries functions_;
  Entries attributes_;
  internal::StringTable strings_;
  std::array<ProtoWriter, 5> scratch_;  // one for each level of messages
};

// The attributes of a resource: those of the options, and of the profile's process and machine what
// they leave out.
void WriteResource(const Profile& profile, const OtlpOptions& options, ProtoWriter& message) {
  ProtoWriter value;
  ProtoWriter attribute;
  const auto add = [&](std::string_view key,
                       const std::variant<std::int64_t, std::string>& content) {
    value.Clear();
    WriteValue(value, content);
    attribute.Clear();
    attribute.Bytes(Fields::kKey, ValidUtf8(key));
    attribute.Message(Fields::kValue, value.bytes());
    message.Message(Fields::kResourceAttributes, attribute.bytes());
  };
  const auto has = [&options](std::string_view key) {
    return std::ranges::any_of(options.resource,
                               [key](const auto& entry) { return entry.first == key; });
  };
  if (!has("service.name")) add("service.name", absl::StrCat("unknown_service:", profile.program));
  if (!has("process.pid")) add("process.pid", static_cast<std::int64_t>(profile.process_id));
  if (!has("process.executable.name")) add("process.executable.name", profile.program);
  VisitMachine(profile.machine, MachinePart::kAll, [&](const MachineTag& tag, const Label& label) {
    if (!has(tag.otlp)) add(tag.otlp, AttributeValue(label));
  });
  for (const auto& [key, content] : options.resource) add(key, content);
}

class OtlpEncoding {
 public:
  OtlpEncoding(const ProfileView& view, const OtlpOptions& options)
      : profile_(view.profile()),
        options_(options),
        dictionary_(view),
        attributes_(view.profile().label_sets.size()) {}

  absl::StatusOr<std::string> Run() {
    ProtoWriter scope_profiles;
    ProtoWriter part;
    part.Bytes(Fields::kScopeName, "strobe");
    scope_profiles.Message(Fields::kScope, part.bytes());
    for (std::size_t column = 0; column < profile_.value_types.size(); ++column) {
      part.Clear();
      if (absl::Status status = WriteProfile(part, column); !status.ok()) return status;
      scope_profiles.Message(Fields::kProfiles, part.bytes());
    }
    ProtoWriter resource_profiles;
    part.Clear();
    WriteResource(profile_, options_, part);
    resource_profiles.Message(Fields::kResource, part.bytes());
    resource_profiles.Message(Fields::kScopeProfiles, scope_profiles.bytes());
    ProtoWriter message;
    message.Message(Fields::kResourceProfiles, resource_profiles.bytes());
    part.Clear();
    if (absl::Status status = dictionary_.Write(part); !status.ok()) return status;
    message.Message(Fields::kDictionary, part.bytes());
    if (message.size() > OtlpEncoder::kMaxMessageBytes) return TooLong();
    return message.Take();
  }

 private:
  static absl::Status TooLong() {
    return absl::OutOfRangeError("the profile is too long for OTLP");
  }

  void WriteValueType(ProtoWriter& message, std::uint32_t field, const ValueType& value_type) {
    scratch_.Clear();
    scratch_.Field(Fields::kType, dictionary_.Text(value_type.type));
    scratch_.Field(Fields::kUnit, dictionary_.Text(value_type.unit));
    message.Message(field, scratch_.bytes());
  }

  absl::Status WriteProfile(ProtoWriter& message, std::size_t column) {
    WriteValueType(message, Fields::kSampleType, profile_.value_types[column]);
    for (std::size_t i = 0; i < profile_.samples.size(); ++i) {
      const std::int64_t value = profile_.Values(i)[column];
      if (value == 0) continue;
      const ProfileSample& sample = profile_.samples[i];
      scratch_.Clear();
      scratch_.Field(Fields::kStack, dictionary_.Stack(sample.stack));
      scratch_.Bytes(Fields::kSampleAttributes, AttributesOf(sample.labels));
      inner_.Clear();
      inner_.Varint(static_cast<std::uint64_t>(value));
      scratch_.Bytes(Fields::kValues, inner_.bytes());
      message.Message(Fields::kSamples, scratch_.bytes());
      if (message.size() > OtlpEncoder::kMaxMessageBytes) return TooLong();
    }
    message.Fixed64(Fields::kTimeNs, static_cast<std::uint64_t>(profile_.time_ns));
    message.Field(Fields::kDurationNs, static_cast<std::uint64_t>(profile_.duration_ns));
    if (profile_.period_type != ValueType{})
      WriteValueType(message, Fields::kPeriodType, profile_.period_type);
    message.Field(Fields::kPeriod, static_cast<std::uint64_t>(profile_.period));
    return absl::OkStatus();
  }

  // The packed field of a label set. If two labels get the same key, the first is taken.
  std::string_view AttributesOf(std::uint32_t set) {
    ProtoWriter& attributes = attributes_[set];
    if (attributes.size() != 0) return attributes.bytes();
    std::vector<std::string_view> keys;
    for (const Label& label : profile_.label_sets[set].labels()) {
      const std::string_view key = AttributeKey(label);
      if (std::ranges::find(keys, key) != keys.end()) continue;
      keys.push_back(key);
      attributes.Varint(dictionary_.Attribute(key, label.value));
    }
    return attributes.bytes();
  }

  const Profile& profile_;
  const OtlpOptions& options_;
  Dictionary dictionary_;
  std::vector<ProtoWriter> attributes_;  // of each label set, empty before its first use
  ProtoWriter scratch_;
  ProtoWriter inner_;
};

}  // namespace

OtlpEncoder::OtlpEncoder(OtlpOptions options) : options_(std::move(options)) {}

absl::StatusOr<std::string> OtlpEncoder::Encode(const Profile& profile, const Symbols& symbols) {
  const absl::StatusOr<ProfileView> view = ProfileView::Make(profile, symbols);
  if (!view.ok()) return view.status();
  return OtlpEncoding(*view, options_).Run();
}

std::string OtlpEncoder::EncodeProcessContext(const Profile& process) const {
  ProtoWriter resource;
  WriteResource(process, options_, resource);
  ProtoWriter message;
  message.Message(Fields::kContextResource, resource.bytes());
  return message.Take();
}

}  // namespace strobe
