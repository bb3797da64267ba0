#include "fde_index.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <optional>
#include <utility>

#include "dwarf_reader.h"

namespace strobe::internal {
namespace {

// FDEs of neighbouring functions mostly lie next to one another.
constexpr std::size_t kFdeWindowBytes = std::size_t{1} << 14;
constexpr std::size_t kCieWindowBytes = 256;
constexpr std::size_t kScanWindowBytes = std::size_t{1} << 17;

// Bytes of an entry in the linker's index.
constexpr std::size_t kEntryBytes = 8;

// The address at which an .eh_frame lies that is not in memory. It is not mapped; any but 0 would
// do.
constexpr Address kUnmappedBase = 4096;

}  // namespace

bool FdeIndex::ReadSorted(Address header) {
  constexpr std::uint8_t kTableEncoding =
      0x3B;  // four signed bytes, relative to the header: what all linkers write
  std::array<std::uint8_t, 32> bytes{};
  const std::size_t got = (*read_)(header, bytes);
  DwarfReader reader({bytes.data(), got}, header);
  const auto version = reader.Read<std::uint8_t>();
  const auto eh_frame_encoding = reader.Read<std::uint8_t>();
  const auto count_encoding = reader.Read<std::uint8_t>();
  const auto table_encoding = reader.Read<std::uint8_t>();
  reader.ReadPointer(eh_frame_encoding, header);
  const Address count = reader.ReadPointer(count_encoding, header);
  if (!reader.ok() || version != 1 || table_encoding != kTableEncoding || count == 0 ||
      count > kMaxEhFrameBytes / kEntryBytes)
    return false;
  base_ = header;
  if (!ReadTable(reader.address(), count)) {
    places_.clear();
    return false;
  }
  Sort();
  return true;
}

bool FdeIndex::ReadTable(Address table, std::uint64_t entries) {
  std::vector<std::uint8_t> chunk;
  for (Address next = table; entries > 0;) {
    chunk.resize(
        std::min<std::size_t>(static_cast<std::size_t>(entries) * kEntryBytes, kScanWindowBytes));
    if ((*read_)(next, chunk) < chunk.size()) return false;
    DwarfReader reader(chunk, next);
    while (reader.remaining() > 0) {
      const Address function =
          base_ + static_cast<Address>(std::int64_t{reader.Read<std::int32_t>()});
      Add(function, reader.Read<std::int32_t>());
    }
    next += chunk.size();
    entries -= chunk.size() / kEntryBytes;
  }
  return true;
}

bool FdeIndex::Scan(Address eh_frame, std::uint64_t bytes) {
  base_ = eh_frame;
  return ScanEntries(std::min(bytes, kMaxEhFrameBytes));
}

void FdeIndex::Scan(std::vector<std::uint8_t> eh_frame) {
  if (eh_frame.empty()) return;
  bytes_ = std::move(eh_frame);
  base_ = kUnmappedBase;
  ScanEntries(bytes_.size());
}

bool FdeIndex::ScanEntries(std::uint64_t bytes) {
  EhFrameReader reader = Reader(kScanWindowBytes);
  EhFrameReader cie_reader = Reader(kCieWindowBytes);
  Address next = base_;
  bool is_whole = true;
  while (next - base_ < bytes) {
    std::optional<EhFrameEntry> entry = reader.At(next);
    is_whole = entry.has_value();
    if (!entry || entry->is_terminator) break;
    const Address at = std::exchange(next, entry->next);
    const CfiEntry* cie = entry->cie == 0 ? nullptr : cies_.At(cie_reader, entry->cie);
    FdeRange range;
    if (cie != nullptr && ReadFdeRange(*cie, entry->body, range))
      Add(range.begin, static_cast<std::int32_t>(at - base_));
  }
  has_failed_ |= reader.has_failed();
  Sort();
  return is_whole;
}

void FdeIndex::Add(Address function, std::int32_t fde) {
  if (function < module_->start || function >= module_->limit) return;
  places_.push_back({static_cast<std::uint32_t>(function - module_->start), fde});
}

void FdeIndex::Sort() {
  if (!std::is_sorted(places_.begin(), places_.end(), IsBefore))
    std::sort(places_.begin(), places_.end(), IsBefore);
  places_.shrink_to_fit();
}

void FdeIndex::Remove(const FdeIndex& other) {
  std::erase_if(places_, [&](const Place& place) {
    return std::binary_search(other.places_.begin(), other.places_.end(), place, IsBefore);
  });
  places_.shrink_to_fit();
  if (places_.empty()) bytes_ = std::vector<std::uint8_t>();
}

// The FDEs of the functions that have code from `first` to `limit`, in the order in which they lie.
std::vector<Address> FdeIndex::FdesOf(Address first, Address limit) const {
  const auto is_before = [](const Place& place, Address offset) { return place.offset < offset; };
  auto begin = std::lower_bound(places_.begin(), places_.end(), first - module_->start, is_before);
  const auto end = std::lower_bound(begin, places_.end(), limit - module_->start, is_before);
  // The last function that begins before the range may reach into it.
  if (begin != places_.begin())
    begin = std::lower_bound(places_.begin(), begin, std::prev(begin)->offset, is_before);
  std::vector<Address> fdes;
  fdes.reserve(static_cast<std::size_t>(end - begin));
  for (auto place = begin; place != end; ++place)
    fdes.push_back(base_ + static_cast<Address>(std::int64_t{place->fde}));
  std::sort(fdes.begin(), fdes.end());
  return fdes;
}

void FdeIndex::AddRows(Address first, Address limit, CfiRows& rows) {
  EhFrameReader reader = Reader(kFdeWindowBytes);
  EhFrameReader cie_reader = Reader(kCieWindowBytes);
  const std::size_t broken_cies = cies_.broken();
  for (const Address fde : FdesOf(first, limit)) {
    const std::optional<EhFrameEntry> entry = reader.At(fde);
    if (!entry || entry->cie == 0) {
      rows.AddBroken(1);
    } else if (const CfiEntry* cie = cies_.At(cie_reader, entry->cie)) {
      rows.Add(*cie, entry->body);
    }
  }
  rows.AddBroken(cies_.broken() - broken_cies);
  has_failed_ |= reader.has_failed() || cie_reader.has_failed();
}

}  // namespace strobe::internal
