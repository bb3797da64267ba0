#include "perf_records.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"
#include "perf_fields.h"

namespace strobe::internal {
namespace {

constexpr std::size_t kRecordHeaderBytes = 8;
constexpr std::size_t kWindowBytes = std::size_t{1} << 20;
static_assert(kWindowBytes > 1 << 16, "a record's size has 16 bits");

// Bytes of the fields in `bits` that an event's samples have, of eight bytes each.
std::size_t BytesOf(std::uint64_t sample_type, std::uint64_t bits) {
  return sizeof(std::uint64_t) * static_cast<std::size_t>(std::popcount(sample_type & bits));
}

std::uint64_t WordAt(std::span<const std::byte> bytes, std::size_t offset) {
  std::uint64_t word = 0;
  if (offset <= bytes.size() && bytes.size() - offset >= sizeof(word))
    std::memcpy(&word, bytes.data() + offset, sizeof(word));
  return word;
}

// The bytes of other kinds of data behind a record, which its size does not count.
std::uint64_t BytesBehind(const PerfRecord& record) {
  PerfFields fields(record.body);
  if (record.type == PerfRecordType::kAuxTrace) return fields.Take<std::uint64_t>();
  if (record.type == PerfRecordType::kTracingData)
    return (std::uint64_t{fields.Take<std::uint32_t>()} + 7) & ~std::uint64_t{7};
  return 0;
}

// Skips the counters of a sample.
void SkipRead(const PerfEvent& event, PerfFields& fields) {
  constexpr std::uint64_t kTimes = 1 | 2;
  constexpr std::uint64_t kId = 4;
  constexpr std::uint64_t kGroup = 8;
  constexpr std::uint64_t kLost = 16;
  const auto times = static_cast<unsigned>(std::popcount(event.read_format & kTimes));
  const auto of_each = 1 + static_cast<unsigned>(std::popcount(event.read_format & (kId | kLost)));
  if ((event.read_format & kGroup) == 0) {
    fields.TakeWords(times + of_each);
    return;
  }
  const auto count = fields.Take<std::uint64_t>();
  fields.TakeWords(times);
  if (count <= fields.remaining()) fields.TakeWords(count * of_each);
}

void SkipBranches(const PerfEvent& event, PerfFields& fields) {
  constexpr std::uint64_t kBranchWords = 3;
  const auto count = fields.Take<std::uint64_t>();
  if (event.has_branch_index) fields.Take<std::uint64_t>();
  fields.TakeWords(count <= fields.remaining() ? count * kBranchWords : count);
}

}  // namespace

bool PerfRecordReader::Fill(std::size_t bytes) {
  const std::uint64_t left = end_ - at_;
  if (bytes > left) return false;
  if (at_ >= window_at_ && at_ - window_at_ <= window_.size() &&
      window_.size() - (at_ - window_at_) >= bytes)
    return true;
  window_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(left, kWindowBytes)));
  window_at_ = at_;
  return source_.ReadAt(at_, window_);
}

absl::StatusOr<bool> PerfRecordReader::Next(PerfRecord& record) {
  const auto broken = [&](const char* what) -> absl::StatusOr<bool> {
    if (may_be_cut_) return false;
    return absl::InvalidArgumentError(absl::StrCat("the record at ", at_, " ", what));
  };
  if (at_ >= end_) return false;
  if (!Fill(kRecordHeaderBytes)) return broken("is cut off");
  PerfFields fields(std::span<const std::byte>(window_).subspan(
      static_cast<std::size_t>(at_ - window_at_), kRecordHeaderBytes));
  record.type = static_cast<PerfRecordType>(fields.Take<std::uint32_t>());
  record.misc = fields.Take<std::uint16_t>();
  const auto size = fields.Take<std::uint16_t>();
  if (size < kRecordHeaderBytes) {
    return absl::InvalidArgumentError(absl::StrCat("the record at ", at_, " has no size"));
  }
  if (!Fill(size)) return broken("is cut off");
  record.body = std::span<const std::byte>(window_).subspan(
      static_cast<std::size_t>(at_ - window_at_) + kRecordHeaderBytes, size - kRecordHeaderBytes);
  at_ += size;
  const std::uint64_t behind = BytesBehind(record);
  if (behind > end_ - at_) return broken("lacks its data");
  at_ += behind;
  return true;
}

absl::StatusOr<std::size_t> ParseRecord(std::span<const std::byte> bytes, PerfRecord& record) {
  if (bytes.size() < kRecordHeaderBytes) return 0;
  PerfFields fields(bytes);
  record.type = static_cast<PerfRecordType>(fields.Take<std::uint32_t>());
  record.misc = fields.Take<std::uint16_t>();
  const std::size_t size = fields.Take<std::uint16_t>();
  if (size < kRecordHeaderBytes) return absl::InvalidArgumentError("a record has no size");
  if (size > bytes.size()) return 0;
  record.body = bytes.subspan(kRecordHeaderBytes, size - kRecordHeaderBytes);
  return size;
}

std::uint64_t TimeOf(const PerfHeader& header, const PerfRecord& record) {
  if (header.events.empty() || record.type >= PerfRecordType::kFirstOfPerf) return 0;
  const PerfEvent& event = header.events[0];
  if ((event.sample_type & kPerfTime) == 0) return 0;
  if (record.type == PerfRecordType::kSample)
    return WordAt(record.body, BytesOf(event.sample_type, kPerfIdentifier | kPerfIp | kPerfThread));
  if (!event.has_ids_in_all_records) return 0;
  const std::size_t from_end =
      BytesOf(event.sample_type, kPerfTime | kPerfId | kPerfStreamId | kPerfCpu | kPerfIdentifier);
  return from_end > record.body.size() ? 0 : WordAt(record.body, record.body.size() - from_end);
}

namespace {

// The process, and in the upper half the thread, that a record ends with; 0 if it does not.
std::uint64_t TaskOf(const PerfHeader& header, const PerfRecord& record) {
  if (header.events.empty()) return 0;
  const PerfEvent& event = header.events[0];
  if (!event.has_ids_in_all_records || (event.sample_type & kPerfThread) == 0) return 0;
  const std::size_t from_end =
      BytesOf(event.sample_type,
              kPerfThread | kPerfTime | kPerfId | kPerfStreamId | kPerfCpu | kPerfIdentifier);
  if (from_end > record.body.size()) return 0;
  return WordAt(record.body, record.body.size() - from_end);
}

}  // namespace

std::uint32_t ThreadOf(const PerfHeader& header, const PerfRecord& record) {
  constexpr unsigned kThreadShift = 32;
  return static_cast<std::uint32_t>(TaskOf(header, record) >> kThreadShift);
}

std::uint32_t ProcessOf(const PerfHeader& header, const PerfRecord& record) {
  return static_cast<std::uint32_t>(TaskOf(header, record));
}

bool IsExec(const PerfRecord& record) {
  constexpr std::uint16_t kExec = 1 << 13;  // PERF_RECORD_MISC_COMM_EXEC
  return (record.misc & kExec) != 0;
}

bool IsSwitchOut(const PerfRecord& record) {
  constexpr std::uint16_t kOut = 1 << 13;  // PERF_RECORD_MISC_SWITCH_OUT
  return (record.misc & kOut) != 0;
}

std::uint32_t EventOf(const PerfHeader& header, const PerfRecord& sample) {
  if (header.events.size() < 2) return 0;
  const std::uint64_t type = header.events[0].sample_type;
  if ((type & (kPerfIdentifier | kPerfId)) == 0) return 0;
  const std::size_t offset = (type & kPerfIdentifier) != 0
                                 ? 0
                                 : BytesOf(type, kPerfIp | kPerfThread | kPerfTime | kPerfAddress);
  const auto found = header.events_by_id.find(WordAt(sample.body, offset));
  return found == header.events_by_id.end() ? 0 : found->second;
}

std::optional<std::uint32_t> EventOfOther(const PerfHeader& header, const PerfRecord& record) {
  if (header.events.empty()) return std::nullopt;
  const PerfEvent& event = header.events[0];
  const std::uint64_t behind =
      (event.sample_type & kPerfIdentifier) != 0 ? 0 : kPerfStreamId | kPerfCpu;
  if (!event.has_ids_in_all_records || (event.sample_type & (kPerfIdentifier | kPerfId)) == 0)
    return std::nullopt;
  const std::size_t from_end = sizeof(std::uint64_t) + BytesOf(event.sample_type, behind);
  if (from_end > record.body.size()) return std::nullopt;
  const auto found = header.events_by_id.find(WordAt(record.body, record.body.size() - from_end));
  if (found == header.events_by_id.end()) return std::nullopt;
  return found->second;
}

std::optional<PerfMap> ParseMap(const PerfRecord& record) {
  constexpr std::uint16_t kIsData = 1 << 13;
  constexpr std::uint16_t kHasBuildId = 1 << 14;
  constexpr std::uint32_t kExecutable = 4;
  constexpr std::size_t kFileBytes = 24;  // device, inode and generation; or a build id
  PerfFields fields(record.body);
  PerfMap map{.process = fields.Take<std::uint32_t>(), .mapping = {}};
  Mapping& mapping = map.mapping;
  fields.Take<std::uint32_t>();  // a thread
  mapping.start = fields.Take<std::uint64_t>();
  mapping.limit = mapping.start + fields.Take<std::uint64_t>();
  mapping.file_offset = fields.Take<std::uint64_t>();
  bool is_code = (record.misc & kIsData) == 0;
  if (record.type == PerfRecordType::kMmap2) {
    PerfFields file(fields.TakeBytes(kFileBytes));
    if ((record.misc & kHasBuildId) != 0) {
      const auto size = file.Take<std::uint8_t>();
      file.TakeBytes(3);
      mapping.build_id = HexOf(file.TakeBytes(std::min<std::size_t>(size, file.remaining())));
    }
    is_code = (fields.Take<std::uint32_t>() & kExecutable) != 0;
    fields.Take<std::uint32_t>();  // flags
  }
  mapping.path = fields.TakeText(fields.remaining());
  return fields.ok() && is_code ? std::optional(std::move(map)) : std::nullopt;
}

bool ParseSample(const PerfEvent& event, std::span<const std::byte> body, PerfSample& sample) {
  PerfFields fields(body);
  const auto has = [&](PerfSampleBit bit) { return (event.sample_type & bit) != 0; };
  sample = {};
  if (has(kPerfIdentifier)) fields.Take<std::uint64_t>();
  if (has(kPerfIp)) sample.ip = fields.Take<std::uint64_t>();
  if (has(kPerfThread)) {
    sample.process = fields.Take<std::uint32_t>();
    sample.thread = fields.Take<std::uint32_t>();
  }
  if (has(kPerfTime)) sample.time = fields.Take<std::uint64_t>();
  for (const PerfSampleBit bit : {kPerfAddress, kPerfId, kPerfStreamId, kPerfCpu}) {
    if (has(bit)) fields.Take<std::uint64_t>();
  }
  sample.period = has(kPerfPeriod) ? fields.Take<std::uint64_t>() : event.period;
  if (has(kPerfRead)) SkipRead(event, fields);
  if (has(kPerfCallchain)) sample.callchain = fields.TakeWords(fields.Take<std::uint64_t>());
  if (has(kPerfRaw)) sample.raw = fields.TakeBytes(fields.Take<std::uint32_t>());
  if (has(kPerfBranches)) SkipBranches(event, fields);
  if (has(kPerfRegisters)) {
    sample.registers_kind = fields.Take<std::uint64_t>();
    if (sample.registers_kind != 0)
      sample.registers = fields.TakeWords(static_cast<unsigned>(std::popcount(event.registers)));
  }
  if (has(kPerfStack)) {
    const auto room = fields.Take<std::uint64_t>();
    sample.stack = fields.TakeBytes(room);
    if (room != 0) {
      const auto used = fields.Take<std::uint64_t>();
      sample.stack = sample.stack.first(
          static_cast<std::size_t>(std::min<std::uint64_t>(used, sample.stack.size())));
    }
  }
  return fields.ok();
}

std::optional<std::uint64_t> ValueOf(const TracepointField& field, std::span<const std::byte> raw) {
  std::uint64_t value = 0;
  if (field.bytes == 0 || field.bytes > sizeof(value) || field.offset > raw.size() ||
      raw.size() - field.offset < field.bytes)
    return std::nullopt;
  std::memcpy(&value, raw.data() + field.offset, field.bytes);  // the lowest byte first
  const bool is_negative = field.is_signed && (value >> (8 * field.bytes - 1) & 1) != 0;
  return is_negative ? 0 : value;
}

absl::Status PerfOrder::Add(const PerfRecord& record, std::uint64_t time) {
  places_.push_back({time, bytes_.size(), static_cast<std::uint32_t>(record.body.size()),
                     record.type, record.misc});
  bytes_.insert(bytes_.end(), record.body.begin(), record.body.end());
  newest_ = std::max(newest_, time);
  if (bytes_.size() <= kMaxBytes) return absl::OkStatus();
  std::vector<std::uint64_t> times(places_.size());
  std::ranges::transform(places_, times.begin(), &Place::time);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return Give(*middle);
}

absl::Status PerfOrder::EndRound() { return Give(std::exchange(newest_of_last_round_, newest_)); }

// Gives the records up to that time to the sink.
absl::Status PerfOrder::Give(std::uint64_t until) {
  std::ranges::stable_sort(places_, {}, &Place::time);
  const auto first_left = std::ranges::upper_bound(places_, until, {}, &Place::time);
  for (auto place = places_.begin(); place != first_left; ++place) {
    const PerfRecord record{
        place->type, place->misc,
        std::span<const std::byte>(bytes_).subspan(place->offset, place->bytes)};
    if (absl::Status status = sink_(record, place->time); !status.ok()) return status;
  }
  given_until_ = until;
  places_.erase(places_.begin(), first_left);
  std::vector<std::byte> left;
  for (Place& place : places_) {
    const auto from = bytes_.begin() + static_cast<std::ptrdiff_t>(place.offset);
    place.offset = left.size();
    left.insert(left.end(), from, from + static_cast<std::ptrdiff_t>(place.bytes));
  }
  bytes_ = std::move(left);
  return absl::OkStatus();
}

}  // namespace strobe::internal
