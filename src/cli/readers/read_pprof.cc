#include "read_pprof.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "../../encode/pprof/pprof_fields.h"
#include "../../encode/proto_reader.h"
#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "pprof_reading.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kMaxLines = 1024;  // of a location
constexpr std::size_t kMaxStackFrames = std::size_t{1} << 16;
constexpr std::size_t kMaxColumns = 256;
// A tag and a length.
constexpr std::size_t kMaxHeadBytes = 20;

}  // namespace

absl::Status PprofReading::Read(Input& input) {
  while (true) {
    if (absl::Status status = input.Fill(kMaxHeadBytes); !status.ok()) return status;
    if (input.view().empty()) return absl::OkStatus();
    ProtoReader head(input.view());
    std::uint64_t key = 0;
    std::uint64_t number = 0;
    if (!head.Varint(key)) return Damaged("a field has no number");
    const std::uint64_t kind = key & 7;
    if ((kind != 0 && kind != 2) || key >> 3 == 0)
      return Damaged("a field of a kind that the format does not have");
    if (!head.Varint(number)) return Damaged("a field is cut off");
    const std::size_t head_bytes = input.view().size() - head.rest().size();
    std::size_t content_bytes = 0;
    if (kind == 2) {
      if (number > kMaxPprofFieldBytes) return Damaged("a field is longer than 16 MiB");
      content_bytes = static_cast<std::size_t>(number);
      if (absl::Status status = input.Fill(head_bytes + content_bytes); !status.ok()) return status;
      if (input.view().size() < head_bytes + content_bytes) return Damaged("it is cut off");
    }
    const std::string_view content = input.view().substr(head_bytes, content_bytes);
    if (absl::Status status = Part(static_cast<std::uint32_t>(key >> 3), number, content);
        !status.ok())
      return status;
    input.Skip(head_bytes + content_bytes);
  }
}

absl::Status PprofReading::Part(std::uint32_t field, std::uint64_t number,
                                std::string_view content) {
  bool is_ok = true;
  switch (field) {
    case kSampleType:
      is_ok = types_.size() < kMaxColumns && Type(content, types_.emplace_back());
      break;
    case kSample: is_ok = Sample(content); break;
    case kMapping: is_ok = Mapping(content); break;
    case kLocation: is_ok = Location(content); break;
    case kFunction: is_ok = Function(content); break;
    case kStringTable:
      strings_.emplace_back(content);
      builder_.Take(2 * sizeof(std::string) + content.size());
      break;
    case kDropFrames: drop_frames_ = number; break;
    case kKeepFrames: keep_frames_ = number; break;
    case kTimeNs: builder_.profile().time_ns = static_cast<std::int64_t>(number); break;
    case kDurationNs: builder_.profile().duration_ns = static_cast<std::int64_t>(number); break;
    case kPeriodType: is_ok = Type(content, period_type_); break;
    case kPeriod: builder_.profile().period = static_cast<std::int64_t>(number); break;
    case kComment: {
      ProtoReader packed(content);
      if (content.empty()) comments_.push_back(number);
      while (is_ok && !packed.AtEnd()) is_ok = packed.Varint(comments_.emplace_back());
      break;
    }
    case kDefaultSampleType: default_type_ = number; break;
    default: break;  // of a newer version
  }
  return is_ok ? builder_.status()
               : Damaged(absl::StrCat("field ", field, " does not read as what it should be"));
}

bool PprofReading::Type(std::string_view bytes, RawType& type) {
  ProtoReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == 1) type.type = reader.number();
    if (reader.field() == 2) type.unit = reader.number();
  }
  return reader.ok();
}

bool PprofReading::Sample(std::string_view bytes) {
  frames_.clear();
  values_.clear();
  labels_.clear();
  const auto add_frame = [this](std::uint64_t id) {
    frames_.push_back(locations_.Number(id));
    return id != 0 && frames_.size() <= kMaxStackFrames;
  };
  ProtoReader reader(bytes);
  while (reader.Next()) {
    switch (reader.field()) {
      case 1: {
        if (!reader.is_bytes()) {
          if (!add_frame(reader.number())) return false;
          break;
        }
        ProtoReader packed(reader.content());
        std::uint64_t id = 0;
        while (!packed.AtEnd()) {
          if (!packed.Varint(id) || !add_frame(id)) return false;
        }
        break;
      }
      case 2:
        if (!AppendNumbers(reader, values_) || values_.size() > kMaxColumns) return false;
        break;
      case 3: labels_ += reader.raw(); break;
      default: break;
    }
  }
  if (!has_columns_) columns_ = values_.size();
  has_columns_ = true;
  if (!reader.ok() || values_.size() != columns_) return false;
  const auto next = static_cast<std::uint32_t>(raw_labels_.size());
  auto found = label_numbers_.find(labels_);
  if (found == label_numbers_.end()) {
    found = label_numbers_.emplace(labels_, next).first;
    raw_labels_.emplace_back();
    builder_.Take(4 * sizeof(std::string) + labels_.size());
  }
  builder_.AddRow(builder_.Stack(frames_), found->second, values_);
  return true;
}

bool PprofReading::Line(std::string_view bytes) {
  SourceLine& line = lines_.emplace_back();
  ProtoReader reader(bytes);
  std::uint64_t function = 0;
  while (reader.Next()) {
    if (reader.field() == 1) function = reader.number();
    if (reader.field() == 2) line.line = static_cast<std::uint32_t>(reader.number());
    if (reader.field() == 3) line.column = static_cast<std::uint32_t>(reader.number());
  }
  line.function = functions_.Number(function);
  return reader.ok() && function != 0 && lines_.size() <= kMaxLines;
}

bool PprofReading::Location(std::string_view bytes) {
  lines_.clear();
  Frame frame;
  std::uint64_t id = 0;
  ProtoReader reader(bytes);
  while (reader.Next()) {
    switch (reader.field()) {
      case 1: id = reader.number(); break;
      case 2:
        frame.module = reader.number() == 0 ? Frame::kNoModule : mappings_.Number(reader.number());
        break;
      case 3: frame.address = reader.number(); break;
      case 4:
        if (!Line(reader.content())) return false;
        break;
      default: break;
    }
  }
  const std::uint32_t number = locations_.Number(id);
  Profile& profile = builder_.profile();
  Symbols& symbols = builder_.symbols();
  if (number >= profile.frames.size()) {
    const std::size_t size = std::size_t{number} + 1;
    builder_.Take(2 * (size - profile.frames.size()) * (sizeof(Frame) + sizeof(FrameSymbols)));
    profile.frames.resize(size);
    symbols.frames.resize(size);
    is_frame_defined_.resize(size);
  }
  if (!reader.ok() || id == 0 || is_frame_defined_[number]) return false;
  is_frame_defined_[number] = true;
  profile.frames[number] = frame;
  if (lines_.empty()) return true;
  FrameSymbols& names = symbols.frames[number];
  names = {.function = lines_.back().function,
           .line = lines_.back().line,
           .column = lines_.back().column};
  names.inlined_begin = static_cast<std::uint32_t>(symbols.inlined.size());
  names.inlined_count = static_cast<std::uint32_t>(lines_.size() - 1);
  symbols.inlined.insert(symbols.inlined.end(), lines_.begin(), lines_.end() - 1);
  builder_.Take(2 * lines_.size() * sizeof(SourceLine));
  return true;
}

bool PprofReading::Function(std::string_view bytes) {
  RawFunction function;
  function.is_defined = true;
  std::uint64_t id = 0;
  ProtoReader reader(bytes);
  while (reader.Next()) {
    switch (reader.field()) {
      case 1: id = reader.number(); break;
      case 2: function.name = reader.number(); break;
      case 3: function.system_name = reader.number(); break;
      case 4: function.file = reader.number(); break;
      case 5: function.line = reader.number(); break;
      default: break;
    }
  }
  const std::uint32_t number = functions_.Number(id);
  if (number >= raw_functions_.size()) raw_functions_.resize(std::size_t{number} + 1);
  builder_.Take(2 * (sizeof(RawFunction) + sizeof(FunctionSymbol)));
  if (!reader.ok() || id == 0 || raw_functions_[number].is_defined) return false;
  raw_functions_[number] = function;
  return true;
}

bool PprofReading::Mapping(std::string_view bytes) {
  RawMapping mapping;
  mapping.is_defined = true;
  std::uint64_t id = 0;
  ProtoReader reader(bytes);
  while (reader.Next()) {
    switch (reader.field()) {
      case 1: id = reader.number(); break;
      case 2: mapping.module.start = reader.number(); break;
      case 3: mapping.module.limit = reader.number(); break;
      case 4: mapping.module.file_offset = reader.number(); break;
      case 5: mapping.path = reader.number(); break;
      case 6: mapping.build_id = reader.number(); break;
      default: break;
    }
  }
  const std::uint32_t number = mappings_.Number(id);
  if (!first_mapping_.has_value()) first_mapping_ = number;
  if (number >= raw_mappings_.size()) raw_mappings_.resize(std::size_t{number} + 1);
  builder_.Take(2 * (sizeof(RawMapping) + sizeof(Module)));
  if (!reader.ok() || id == 0 || raw_mappings_[number].is_defined) return false;
  raw_mappings_[number] = std::move(mapping);
  return true;
}

absl::StatusOr<LoadedProfile> ReadPprof(Input& input) {
  PprofReading reading;
  if (absl::Status status = reading.Read(input); !status.ok()) return status;
  return reading.Finish();
}

}  // namespace strobe::internal
