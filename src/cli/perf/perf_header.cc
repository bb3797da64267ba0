#include "perf_header.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "perf_event_table.h"
#include "perf_fields.h"

namespace strobe::internal {
namespace {

constexpr std::string_view kMagic = "PERFILE2";
constexpr std::string_view kSwappedMagic = "2ELIFREP";
constexpr std::uint64_t kPipeHeaderBytes = 16;
constexpr std::uint64_t kHeaderBytes = 104;
// Limits of what is read of a header.
constexpr std::size_t kMaxEvents = 1 << 12;
constexpr std::size_t kMaxIds = std::size_t{1} << 20;
constexpr std::uint64_t kMaxSectionBytes = std::uint64_t{64} << 20;
constexpr std::size_t kMaxBuildIds = std::size_t{1} << 18;

constexpr std::uint32_t kFeatureBuildIds = 2;
constexpr std::uint32_t kFeatureArchitecture = 6;
constexpr std::uint32_t kFeatureEventNames = 12;
constexpr std::uint32_t kFeatureClock = 29;
constexpr std::uint32_t kFeatures = 256;
constexpr std::size_t kFeatureBits = 72;  // in the header

struct Section {
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;
};

absl::Status Broken(std::string_view what) {
  return absl::InvalidArgumentError(
      absl::StrCat("not a whole perf.data file: ", absl::string_view(what.data(), what.size())));
}

bool ReadSection(const ByteSource& source, const Section& section, std::vector<std::byte>& bytes) {
  if (section.bytes > kMaxSectionBytes || section.offset > source.size() ||
      section.bytes > source.size() - section.offset)
    return false;
  bytes.resize(static_cast<std::size_t>(section.bytes));
  return source.ReadAt(section.offset, bytes);
}

Section TakeSection(PerfFields& fields) {
  const auto offset = fields.Take<std::uint64_t>();
  return {offset, fields.Take<std::uint64_t>()};
}

std::string NameOf(const PerfEvent& event) {
  for (const KnownPerfEvent& known : kPerfEventTable) {
    if (known.type == event.type && known.config == event.config) return std::string(known.name);
  }
  return absl::StrCat("event-", event.type, "-", event.config);
}

// The events' attributes, and where the ids of each are.
absl::Status ReadEvents(const ByteSource& source, const Section& section, std::uint64_t entry_bytes,
                        PerfHeader& header) {
  constexpr std::uint64_t kIdsBytes = 16;
  std::vector<std::byte> entries;
  if (entry_bytes <= kIdsBytes || !ReadSection(source, section, entries))
    return Broken("its table of events is not there");
  PerfFields fields(entries);
  while (fields.remaining() >= entry_bytes) {
    const std::span<const std::byte> attributes = fields.TakeBytes(entry_bytes - kIdsBytes);
    std::vector<std::byte> ids;
    if (!ReadSection(source, TakeSection(fields), ids))
      return Broken("the numbers of an event are not there");
    if (absl::Status status = header.AddEvent(attributes, ids); !status.ok()) return status;
  }
  return absl::OkStatus();
}

void TakeEventNames(PerfFields fields, PerfHeader& header) {
  const auto count = fields.Take<std::uint32_t>();
  const auto attribute_bytes = fields.Take<std::uint32_t>();
  for (std::uint32_t i = 0; i < count && fields.ok(); ++i) {
    fields.TakeBytes(attribute_bytes);
    const auto ids = fields.Take<std::uint32_t>();
    const std::string name(fields.TakeText(fields.Take<std::uint32_t>()));
    fields.TakeWords(ids);
    // The names are in the order of the events.
    if (fields.ok() && !name.empty() && i < header.events.size()) header.events[i].name = name;
  }
}

void TakeBuildIds(std::span<const std::byte> bytes, PerfHeader& header) {
  constexpr std::size_t kRecordHeaderBytes = 8;
  PerfFields fields(bytes);
  while (fields.remaining() >= kRecordHeaderBytes) {
    fields.Take<std::uint32_t>();
    const auto misc = fields.Take<std::uint16_t>();
    const auto size = fields.Take<std::uint16_t>();
    if (size < kRecordHeaderBytes) return;
    const std::span<const std::byte> body = fields.TakeBytes(size - kRecordHeaderBytes);
    if (!fields.ok()) return;
    header.TakeBuildId(misc, body);
  }
}

// As uname says it.
void TakeArchitecture(PerfFields fields, PerfHeader& header) {
  const std::string_view name = fields.TakeText(fields.Take<std::uint32_t>());
  if (!fields.ok()) return;
  header.architecture = name == "x86_64"    ? std::optional(Architecture::kX86_64)
                        : name == "aarch64" ? std::optional(Architecture::kAarch64)
                                            : std::nullopt;
}

void TakeClock(PerfFields fields, PerfHeader& header) {
  fields.Take<std::uint32_t>();  // a version
  fields.Take<std::uint32_t>();  // the clock
  const auto wall_ns = fields.Take<std::uint64_t>();
  const auto clock_ns = fields.Take<std::uint64_t>();
  if (fields.ok()) header.clock_offset_ns = static_cast<std::int64_t>(wall_ns - clock_ns);
}

}  // namespace

bool IsPerfData(std::string_view bytes) {
  return bytes.starts_with(kMagic) || bytes.starts_with(kSwappedMagic);
}

std::string HexOf(std::span<const std::byte> bytes) {
  return absl::BytesToHexString({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

absl::Status PerfHeader::Read(const ByteSource& source) {
  std::array<std::byte, kHeaderBytes> bytes{};
  const auto count = std::min<std::uint64_t>(source.size(), bytes.size());
  if (!source.ReadAt(0, std::span(bytes).first(static_cast<std::size_t>(count))) ||
      count < kPipeHeaderBytes)
    return Broken("it is too short");
  PerfFields fields(bytes);
  const std::string_view magic = fields.TakeText(kMagic.size());
  if (magic == kSwappedMagic)
    return absl::InvalidArgumentError("the file is of a machine with another order of bytes");
  if (magic != kMagic) return absl::InvalidArgumentError("not a perf.data file");
  const auto header_bytes = fields.Take<std::uint64_t>();
  begin = header_bytes;
  end = source.size();
  if (header_bytes == kPipeHeaderBytes) {
    is_cut_off = true;  // nothing says where a pipe's records should end
    return absl::OkStatus();
  }
  if (header_bytes != kHeaderBytes || count < kHeaderBytes) return Broken("its header is unknown");
  const auto event_bytes = fields.Take<std::uint64_t>();
  const Section table = TakeSection(fields);
  const Section data = TakeSection(fields);
  TakeSection(fields);  // types of events, which no perf writes any more
  if (absl::Status status = ReadEvents(source, table, event_bytes, *this); !status.ok())
    return status;
  begin = data.offset;
  is_cut_off = data.bytes == 0;
  if (data.offset > source.size() || data.bytes > source.size() - data.offset)
    return Broken("its records are cut off");
  if (is_cut_off) return absl::OkStatus();
  end = data.offset + data.bytes;
  std::uint64_t place = end;  // of a table of sections, one for each bit
  for (std::uint32_t number = 0; number < kFeatures; ++number) {
    const std::size_t word = kFeatureBits + std::size_t{number} / 64 * sizeof(std::uint64_t);
    std::uint64_t bits = 0;
    std::memcpy(&bits, bytes.data() + word, sizeof(bits));
    if ((bits >> (number % 64) & 1) == 0) continue;
    std::vector<std::byte> entry;
    std::vector<std::byte> feature;
    if (!ReadSection(source, {place, 16}, entry)) return Broken("its last part is cut off");
    place += entry.size();
    PerfFields entry_fields(entry);
    const Section section = TakeSection(entry_fields);
    if (section.offset > source.size() || section.bytes > source.size() - section.offset)
      return Broken("its last part is cut off");
    if (ReadSection(source, section, feature)) TakeFeature(number, feature);
  }
  return absl::OkStatus();
}

absl::Status PerfHeader::AddEvent(std::span<const std::byte> attributes,
                                  std::span<const std::byte> ids) {
  constexpr std::uint64_t kIsFrequency = std::uint64_t{1} << 10;
  constexpr std::uint64_t kIdsInAll = std::uint64_t{1} << 18;
  constexpr std::uint64_t kBranchIndex = std::uint64_t{1} << 17;
  constexpr std::uint64_t kHasClock = std::uint64_t{1} << 25;
  constexpr std::uint32_t kMonotonicClock = 1;
  constexpr std::size_t kLeastBytes = 64;  // of the first version
  if (events.size() == kMaxEvents || events_by_id.size() + ids.size() / 8 > kMaxIds)
    return absl::ResourceExhaustedError("the file has too many events");
  if (attributes.size() < kLeastBytes) return Broken("an event is too short");
  PerfFields fields(attributes);
  PerfEvent event;
  event.type = fields.Take<std::uint32_t>();
  fields.Take<std::uint32_t>();  // the size of the attributes
  event.config = fields.Take<std::uint64_t>();
  event.period = fields.Take<std::uint64_t>();
  event.sample_type = fields.Take<std::uint64_t>();
  event.read_format = fields.Take<std::uint64_t>();
  const auto flags = fields.Take<std::uint64_t>();
  fields.TakeWords(3);  // when to wake up, and what of the hardware
  const auto branches = fields.Take<std::uint64_t>();
  event.registers = fields.Take<std::uint64_t>();
  fields.Take<std::uint32_t>();  // how much of the stack is copied
  event.has_monotonic_times =
      (flags & kHasClock) != 0 && fields.Take<std::uint32_t>() == kMonotonicClock;
  if ((flags & kIsFrequency) != 0) event.period = 0;
  event.has_ids_in_all_records = (flags & kIdsInAll) != 0;
  event.has_branch_index = (branches & kBranchIndex) != 0;
  event.name = NameOf(event);
  const auto index = static_cast<std::uint32_t>(events.size());
  events.push_back(std::move(event));
  PerfFields numbers(ids);
  while (numbers.remaining() >= sizeof(std::uint64_t))
    events_by_id.insert_or_assign(numbers.Take<std::uint64_t>(), index);
  return absl::OkStatus();
}

void PerfHeader::TakeFeature(std::uint32_t number, std::span<const std::byte> bytes) {
  switch (number) {
    case kFeatureBuildIds: return TakeBuildIds(bytes, *this);
    case kFeatureArchitecture: return TakeArchitecture(PerfFields(bytes), *this);
    case kFeatureEventNames: return TakeEventNames(PerfFields(bytes), *this);
    case kFeatureClock: return TakeClock(PerfFields(bytes), *this);
    default: return;
  }
}

void PerfHeader::TakeBuildId(std::uint16_t misc, std::span<const std::byte> body) {
  constexpr std::uint16_t kHasSize = 1 << 15;
  constexpr std::size_t kMaxBytes = 20;
  PerfFields fields(body);
  fields.Take<std::uint32_t>();  // a process
  const std::span<const std::byte> id = fields.TakeBytes(kMaxBytes);
  const auto size = fields.Take<std::uint32_t>() & 0xFF;
  const std::string path(fields.TakeText(fields.remaining()));
  if (!fields.ok() || path.empty() || build_ids.size() == kMaxBuildIds) return;
  const std::size_t bytes =
      (misc & kHasSize) == 0 ? kMaxBytes : std::min<std::size_t>(size, kMaxBytes);
  build_ids[path] = HexOf(id.first(bytes));
}

}  // namespace strobe::internal
