#include "jit_dump.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <iterator>
#include <span>

namespace strobe::internal {
namespace {

constexpr std::uint32_t kDumpMagic = 0x4A695444;  // "JiTD"
constexpr std::uint64_t kHasCpuTimes = 1;  // of the flags: those of a counter of the processor
constexpr std::uint32_t kLoad = 0;
constexpr std::uint32_t kMove = 1;

struct FileHeader {
  std::uint32_t magic, version, bytes, machine, padding, process;
  std::uint64_t time, flags;
};
static_assert(sizeof(FileHeader) == 40);
struct RecordHeader {
  std::uint32_t kind, bytes;
  std::uint64_t time;
};
struct LoadRecord {
  RecordHeader header;
  std::uint32_t process, thread;
  std::uint64_t address, start, bytes, number;  // then the name, a zero, and the code
};
static_assert(sizeof(LoadRecord) == 56);
struct MoveRecord {
  RecordHeader header;
  std::uint32_t process, thread;
  std::uint64_t address, from, to, bytes, number;
};
static_assert(sizeof(MoveRecord) == 64);

// What `bytes` begin with; nothing if they are fewer.
template <class T>
std::optional<T> BeginOf(std::span<const std::byte> bytes) {
  if (bytes.size() < sizeof(T)) return std::nullopt;
  T begin;
  std::memcpy(&begin, bytes.data(), sizeof(T));
  return begin;
}

}  // namespace

bool JitDump::IsPath(std::string_view path) {
  constexpr std::string_view kBegin = "jit-";
  constexpr std::string_view kEnd = ".dump";
  path.remove_prefix(std::min(path.rfind('/') + 1, path.size()));
  if (!path.starts_with(kBegin) || !path.ends_with(kEnd) ||
      path.size() <= kBegin.size() + kEnd.size())
    return false;
  path.remove_prefix(kBegin.size());
  path.remove_suffix(kEnd.size());
  return std::ranges::all_of(path, [](char c) { return c >= '0' && c <= '9'; });
}

void JitDump::Read(const ByteSource& file) {
  if (read_bytes_ == 0 && !ReadHeader(file)) return;
  while (records_ < kMaxRecords && ReadRecord(file)) ++records_;
}

bool JitDump::ReadHeader(const ByteSource& file) {
  std::array<std::byte, sizeof(FileHeader)> bytes{};
  if (!file.ReadAt(0, bytes)) return false;
  const auto header = *BeginOf<FileHeader>(bytes);
  if (header.magic != kDumpMagic || header.bytes < sizeof(FileHeader)) return false;
  has_monotonic_times_ = (header.flags & kHasCpuTimes) == 0;
  read_bytes_ = header.bytes;
  return true;
}

// False at the end, and where the rest is broken.
bool JitDump::ReadRecord(const ByteSource& file) {
  const std::uint64_t size = file.size();
  if (read_bytes_ >= size) return false;
  std::array<std::byte, sizeof(LoadRecord) + kMaxNameBytes> buffer;
  std::span<std::byte> bytes(buffer);
  bytes = bytes.first(std::min<std::uint64_t>(bytes.size(), size - read_bytes_));
  if (!file.ReadAt(read_bytes_, bytes)) return false;
  const auto header = BeginOf<RecordHeader>(bytes);
  if (!header || header->bytes < sizeof(RecordHeader) || header->bytes > size - read_bytes_)
    return false;
  read_bytes_ += header->bytes;
  bytes = bytes.first(std::min<std::size_t>(bytes.size(), header->bytes));
  if (header->kind == kLoad) {
    const auto load = BeginOf<LoadRecord>(bytes);
    if (!load) return true;
    bytes = bytes.subspan(sizeof(LoadRecord));
    const std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    Load(header->time, load->start, load->bytes, text.substr(0, text.find('\0')));
  } else if (header->kind == kMove) {
    const auto move = BeginOf<MoveRecord>(bytes);
    if (move) Move(header->time, move->from, move->to, move->bytes);
  }
  return true;
}

void JitDump::Load(std::uint64_t time, Address start, std::uint64_t bytes, std::string_view name) {
  if (name.empty() || names_bytes_ + name.size() > kMaxNamesBytes) return;
  names_bytes_ += name.size();
  Put(time, start, bytes, names_.emplace_back(name));
}

void JitDump::Move(std::uint64_t time, Address from, Address to, std::uint64_t bytes) {
  const std::optional<std::string_view> name = Find(from, {time, time});
  if (!name || name->empty()) return;
  Put(time, from, bytes, {});
  Put(time, to, bytes, *name);
}

void JitDump::Put(std::uint64_t time, Address start, std::uint64_t bytes, std::string_view name) {
  const Address limit = start + bytes;
  // What is divided is copied: see SplitAt.
  if (limit <= start || parts_ + VersionsAt(start) + VersionsAt(limit) > kMaxParts) return;
  auto part = SplitAt(start);
  for (const auto end = SplitAt(limit); part != end && parts_ < kMaxParts; ++part, ++parts_) {
    Versions& versions = part->second;
    if (versions.size() == kMaxVersions) continue;
    const auto place = std::ranges::upper_bound(versions, time, {}, &Version::since);
    versions.insert(place, {time, name});
  }
}

std::size_t JitDump::VersionsAt(Address address) const {
  const auto after = code_.upper_bound(address);
  return after == code_.begin() ? 0 : std::prev(after)->second.size();
}

JitDump::Parts::iterator JitDump::SplitAt(Address address) {
  const auto next = code_.lower_bound(address);
  if (next != code_.end() && next->first == address) return next;
  if (next == code_.begin()) return code_.emplace_hint(next, address, Versions());
  const Versions& before = std::prev(next)->second;
  parts_ += before.size();
  return code_.emplace_hint(next, address, before);
}

std::optional<std::string_view> JitDump::Find(Address address, TimeSpan times) const {
  const auto after = code_.upper_bound(address);
  if (after == code_.begin() || std::prev(after)->second.empty()) return std::nullopt;
  const Versions& versions = std::prev(after)->second;
  auto first = versions.begin();
  if (times.first > 0 && has_monotonic_times_) {
    first = std::ranges::upper_bound(versions, times.first, {}, &Version::since);
    if (first == versions.begin()) return std::string_view();
    --first;
  }
  const bool is_one = std::all_of(first, versions.end(), [&](const Version& version) {
    return version.name == first->name || (has_monotonic_times_ && version.since > times.last);
  });
  return is_one ? first->name : std::string_view();
}

}  // namespace strobe::internal
