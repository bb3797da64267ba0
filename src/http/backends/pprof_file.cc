#include "pprof_file.h"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <set>

#include "../../encode/gzip.h"
#include "../../encode/pprof_fields.h"
#include "../../encode/proto_reader.h"
#include "../../encode/proto_writer.h"
#include "absl/container/flat_hash_map.h"
#include "absl/container/flat_hash_set.h"
#include "absl/status/status.h"

namespace strobe::internal {
namespace {

// The fields that are, or have, indices of strings.
constexpr std::array<std::uint32_t, 4> kStringFields{kDropFrames, kKeepFrames, kComment, kDocUrl};
// The label that has a thread's name; the second is Datadog's.
constexpr std::array<std::string_view, 2> kThreadKeys{"thread_name", "thread name"};

bool IsGzip(std::string_view bytes) { return bytes.starts_with("\x1f\x8b"); }

// Decompresses all members; false if they are damaged or too long.
bool Gunzip(std::string_view bytes, std::string& result) {
  z_stream stream = {};
  if (bytes.size() > std::numeric_limits<uInt>::max() ||
      inflateInit2(&stream, MAX_WBITS + 16) != Z_OK)
    return false;
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  int status = Z_OK;
  while (status == Z_OK && result.size() <= PprofFile::kMaxBytes) {
    std::array<char, 1 << 16> chunk;
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    status = inflate(&stream, Z_NO_FLUSH);
    result.append(chunk.data(), chunk.size() - stream.avail_out);
    if (status == Z_STREAM_END && stream.avail_in > 0) status = inflateReset(&stream);
  }
  inflateEnd(&stream);
  return status == Z_STREAM_END;
}

}  // namespace

// What a part's samples refer to. Ids are given in the order of the tables.
class PprofFile::Used {
 public:
  // `wants(sample)` tells which samples the part has.
  template <class Wants>
  Used(const PprofFile& file, const Wants& wants) : file_(file) {
    Add(file.rest_strings_);
    Marks locations, functions, mappings;
    for (const Sample& sample : file.samples_) {
      if (!wants(sample)) continue;
      locations.insert(sample.locations.begin(), sample.locations.end());
      Add(sample.strings);
    }
    for (const Entry& location : file.locations_) {
      if (!locations.contains(location.id)) continue;
      mappings.insert(location.mapping);
      for (const auto& [function, rest] : location.lines) functions.insert(function);
    }
    // The program is the first mapping, also if no sample is in it.
    if (!file.mappings_.empty()) mappings.insert(file.mappings_[0].id);
    Number(file.mappings_, mappings, mappings_);
    Number(file.locations_, locations, locations_);
    Number(file.functions_, functions, functions_);
  }
  void Add(const std::vector<std::uint64_t>& strings) {
    strings_.insert(strings.begin(), strings.end());
  }
  [[nodiscard]] std::uint64_t Location(std::uint64_t id) const { return NewId(locations_, id); }

  void WriteTables(ProtoWriter& writer) const {
    ProtoWriter entry;
    ProtoWriter line;
    for (const Entry& mapping : file_.mappings_)
      Write(writer, kMapping, mapping, NewId(mappings_, mapping.id), entry);
    for (const Entry& location : file_.locations_) {
      const std::uint64_t id = NewId(locations_, location.id);
      if (id == 0) continue;
      entry.Clear();
      entry.Field(1, id);
      entry.Field(2, NewId(mappings_, location.mapping));
      entry.Raw(location.rest);
      for (const auto& [function, rest] : location.lines) {
        line.Clear();
        line.Field(1, NewId(functions_, function));
        line.Raw(rest);
        entry.Message(4, line.bytes());
      }
      writer.Message(kLocation, entry.bytes());
    }
    for (const Entry& function : file_.functions_)
      Write(writer, kFunction, function, NewId(functions_, function.id), entry);
  }
  // A string that is not used is empty: so all keep their numbers.
  void WriteStrings(ProtoWriter& writer) const {
    for (std::size_t i = 0; i < file_.strings_.size(); ++i)
      writer.Message(kStringTable, strings_.contains(i) ? file_.strings_[i] : std::string_view());
  }

 private:
  using Marks = absl::flat_hash_set<std::uint64_t>;
  using Ids = absl::flat_hash_map<std::uint64_t, std::uint64_t>;

  void Number(const std::vector<Entry>& table, const Marks& used, Ids& ids) {
    for (const Entry& entry : table) {
      if (!used.contains(entry.id) || !ids.emplace(entry.id, ids.size() + 1).second) continue;
      Add(entry.strings);
    }
  }
  // 0 if the part has no such entry.
  static std::uint64_t NewId(const Ids& ids, std::uint64_t id) {
    const auto found = ids.find(id);
    return found == ids.end() ? 0 : found->second;
  }
  static void Write(ProtoWriter& writer, std::uint32_t field, const Entry& entry, std::uint64_t id,
                    ProtoWriter& scratch) {
    if (id == 0) return;
    scratch.Clear();
    scratch.Field(1, id);
    scratch.Raw(entry.rest);
    writer.Message(field, scratch.bytes());
  }

  const PprofFile& file_;
  Ids mappings_;
  Ids locations_;
  Ids functions_;
  Marks strings_;
};

absl::StatusOr<PprofFile> PprofFile::Read(std::string_view bytes) {
  PprofFile file;
  bool is_whole = true;
  if (IsGzip(bytes)) {
    is_whole = Gunzip(bytes, file.message_);
  } else {
    file.message_ = std::string(bytes);
  }
  if (!is_whole || !file.Parse())
    return absl::InvalidArgumentError("the encoder's bytes are not a pprof profile");
  return file;
}

bool PprofFile::Parse() {
  ProtoReader reader(message_);
  while (reader.Next()) {
    if (!ParseField(reader)) return false;
  }
  if (!reader.ok() || strings_.empty() || !strings_[0].empty()) return false;
  samples_.reserve(raw_samples_.size());
  for (const std::string_view raw : raw_samples_) {
    if (!ParseSample(raw, samples_.emplace_back())) return false;
  }
  return true;
}

namespace {

// Reads an entry of a table. on_field(entry, reader) gets each field but the id, and returns true
// if the field belongs to the rest.
template <class Entry, class OnField>
bool ParseEntry(std::string_view bytes, std::vector<Entry>& table, OnField&& on_field) {
  Entry& entry = table.emplace_back();
  ProtoReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == 1) {
      entry.id = reader.number();
    } else if (on_field(entry, reader)) {
      entry.rest += reader.raw();
    }
  }
  return reader.ok() && entry.id != 0;
}

// A line of a location: its function's id, and the rest. An id of 0 if it is none.
std::pair<std::uint64_t, std::string> ParseLine(std::string_view bytes) {
  std::pair<std::uint64_t, std::string> line{0, ""};
  ProtoReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == 1) {
      line.first = reader.number();
    } else {
      line.second += reader.raw();
    }
  }
  return line;
}

bool ParseType(std::string_view bytes, std::pair<std::uint64_t, std::uint64_t>& type) {
  ProtoReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == 1) type.first = reader.number();
    if (reader.field() == 2) type.second = reader.number();
  }
  return reader.ok();
}

}  // namespace

bool PprofFile::ParseField(const ProtoReader& reader) {
  const std::string_view content = reader.content();
  const auto strings_between = [](std::uint32_t first, std::uint32_t last) {
    return [first, last](Entry& entry, const ProtoReader& field) {
      if (field.field() >= first && field.field() <= last) entry.strings.push_back(field.number());
      return true;
    };
  };
  switch (reader.field()) {
    case kSampleType: return ParseType(content, types_.emplace_back());
    case kSample: raw_samples_.push_back(content); return true;
    case kStringTable: strings_.push_back(content); return true;
    case kMapping: return ParseEntry(content, mappings_, strings_between(5, 6));
    case kFunction: return ParseEntry(content, functions_, strings_between(2, 4));
    case kLocation:
      return ParseEntry(content, locations_, [](Entry& entry, const ProtoReader& field) {
        if (field.field() == 2) entry.mapping = field.number();
        if (field.field() == 4) entry.lines.push_back(ParseLine(field.content()));
        return field.field() != 2 && field.field() != 4;
      });
    case kDefaultSampleType: return true;
    case kPeriodType: {
      std::pair<std::uint64_t, std::uint64_t> type;
      if (!ParseType(content, type)) return false;
      rest_strings_.insert(rest_strings_.end(), {type.first, type.second});
      break;
    }
    default:
      if (std::ranges::find(kStringFields, reader.field()) != kStringFields.end() &&
          !AppendNumbers(reader, rest_strings_))
        return false;
  }
  rest_ += reader.raw();
  return true;
}

bool PprofFile::ParseSample(std::string_view bytes, Sample& sample) const {
  ProtoReader reader(bytes);
  while (reader.Next()) {
    bool is_read = true;
    switch (reader.field()) {
      case 1: is_read = AppendNumbers(reader, sample.locations); break;
      case 2: is_read = AppendNumbers(reader, sample.values); break;
      case 3: is_read = ParseLabel(reader.content(), sample); [[fallthrough]];
      default: sample.rest += reader.raw();
    }
    if (!is_read) return false;
  }
  return reader.ok() && sample.values.size() == types_.size();
}

bool PprofFile::ParseLabel(std::string_view bytes, Sample& sample) const {
  std::uint64_t key = 0;
  std::uint64_t text = 0;
  ProtoReader reader(bytes);
  while (reader.Next()) {
    if (reader.field() == 1) key = reader.number();
    if (reader.field() == 2) text = reader.number();
    if (reader.field() == 1 || reader.field() == 2 || reader.field() == 4)
      sample.strings.push_back(reader.number());
  }
  if (std::ranges::find(kThreadKeys, String(key)) != kThreadKeys.end())
    sample.thread = String(text);
  return reader.ok();
}

std::vector<PprofFile::ValueType> PprofFile::value_types() const {
  std::vector<ValueType> types;
  for (const auto& [type, unit] : types_) types.push_back({String(type), String(unit)});
  return types;
}

std::vector<std::string> PprofFile::Threads() const {
  std::set<std::string> names;
  for (const Sample& sample : samples_) names.insert(std::string(sample.thread));
  return {names.begin(), names.end()};
}

bool PprofFile::Wants(const Part& part, const Sample& sample) const {
  if (part.threads && std::ranges::find(*part.threads, sample.thread) == part.threads->end())
    return false;
  return std::ranges::any_of(part.columns,
                             [&](std::size_t column) { return sample.values[column] != 0; });
}

bool PprofFile::HasSamples(const Part& part) const {
  return std::ranges::any_of(samples_, [&](const Sample& sample) { return Wants(part, sample); });
}

absl::StatusOr<std::string> PprofFile::Write(const Part& part) const {
  ProtoWriter writer;
  ProtoWriter message;
  ProtoWriter packed;
  Used used(*this, [&](const Sample& sample) { return Wants(part, sample); });
  std::vector<std::string_view> more_strings;
  std::uint64_t last_type = 0;
  for (std::size_t i = 0; i < part.columns.size(); ++i) {
    const auto& [type, unit] = types_[part.columns[i]];
    const bool is_renamed = i < part.names.size() && !part.names[i].empty();
    last_type = is_renamed ? strings_.size() + more_strings.size() : type;
    if (is_renamed) more_strings.push_back(part.names[i]);
    used.Add({last_type, unit});
    message.Clear();
    message.Field(1, last_type);
    message.Field(2, unit);
    writer.Message(kSampleType, message.bytes());
  }
  for (const Sample& sample : samples_) {
    if (!Wants(part, sample)) continue;
    message.Clear();
    packed.Clear();
    for (const std::uint64_t id : sample.locations) packed.Varint(used.Location(id));
    message.Bytes(1, packed.bytes());
    packed.Clear();
    for (const std::size_t column : part.columns)
      packed.Varint(static_cast<std::uint64_t>(sample.values[column]));
    message.Message(2, packed.bytes());
    message.Raw(sample.rest);
    writer.Message(kSample, message.bytes());
  }
  used.WriteTables(writer);
  writer.Raw(rest_);
  writer.Field(kDefaultSampleType, last_type);
  used.WriteStrings(writer);
  for (const std::string_view text : more_strings) writer.Message(kStringTable, text);
  return Gzip(writer.bytes());
}

}  // namespace strobe::internal
