#include "strobe/unwind/cfi_modules.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <string_view>
#include <utility>
#include <vector>

#include "cfi_rows.h"
#include "dwarf_reader.h"
#include "eh_frame_reader.h"
#include "strobe/core/memory_windows.h"
#include "strobe/unwind/known_code.h"
#include "strobe/unwind/pdata_compiler.h"

namespace strobe {
namespace {

using internal::DwarfReader;
using internal::EhFrameEntry;
using internal::EhFrameReader;

// FDEs of neighbouring functions mostly lie side by side.
constexpr std::size_t kFdeWindowBytes = std::size_t{1} << 14;
constexpr std::size_t kCieWindowBytes = 256;
constexpr std::size_t kScanWindowBytes = std::size_t{1} << 17;

// One function: where its code begins, and where its FDE lies.
struct FdePlace {
  std::uint32_t offset = 0;  // from the start of the module's text
  std::int32_t fde = 0;      // from Known::index_base
};

constexpr std::string_view kVdsoPath = "[vdso]";

constexpr std::size_t PiecesOf(const Module& module) {
  return static_cast<std::size_t>((module.limit - module.start + UnwindModules::kPieceBytes - 1) / UnwindModules::kPieceBytes);
}

const std::shared_ptr<const UnwindTable>& EmptyTable() {
  static const auto* const table = new std::shared_ptr<const UnwindTable>(std::make_shared<const UnwindTable>());
  return *table;
}

}  // namespace

struct CfiModules::Known {
  Known(CfiArchitecture architecture, const Module& of) : module(of), cies(architecture), tables(PiecesOf(of)), pending(tables.size()) {}

  const Module module;
  internal::CieCache cies;
  std::vector<std::shared_ptr<const UnwindTable>> tables;  // one a piece; null while not built
  std::size_t pending;                                     // pieces that are not built
  bool has_index = false;
  bool is_suspect = false;  // something could not be read: perhaps because the module was just being unloaded
  Address index_base = 0;
  std::vector<FdePlace> index;  // sorted by offset
  CfiStatistics statistics;
};

CfiModules::CfiModules(CfiArchitecture architecture, ReadMemory read) : architecture_(architecture), read_(std::move(read)) {}
CfiModules::~CfiModules() = default;

void CfiModules::Update(const ModuleMap& map) {
  // Who generates code loads and unloads all the time; what is none of that stays unknown.
  std::erase_if(unknown_, [&](const Range& range) { return Overlaps(map.modules(), range.start, range.limit); });
  std::vector<std::unique_ptr<Known>> now;
  auto before = known_.begin();  // both are sorted by start
  for (const Module& module : map.modules()) {
    const bool has_nothing = module.unwind_address == 0 && module.eh_frame_address == 0 && module.pdata_address == 0 &&
                             module.stack_end == 0 && module.path != kVdsoPath;
    if (has_nothing || module.limit - module.start > std::numeric_limits<std::uint32_t>::max()) {
      unknown_.push_back({module.start, module.limit});
      continue;
    }
    while (before != known_.end() && (*before)->module.start < module.start) ++before;
    const bool is_same = before != known_.end() && (*before)->module == module && !(*before)->is_suspect;
    now.push_back(is_same ? std::move(*before++) : std::make_unique<Known>(architecture_, module));
  }
  std::sort(unknown_.begin(), unknown_.end(), [](const Range& a, const Range& b) { return a.start < b.start; });
  is_complete_ = unknown_.size() >= kMaxUnknownRanges;
  // What is left over of the former ones is cached nowhere any more.
  if (std::any_of(known_.begin(), known_.end(), [](const auto& known) { return known != nullptr; })) cache_ = std::make_shared<RuleCache>();
  known_ = std::move(now);
}

bool CfiModules::Build(Address pc) {
  const auto after = std::upper_bound(known_.begin(), known_.end(), pc,
                                      [](Address address, const std::unique_ptr<Known>& known) { return address < known->module.start; });
  if (after == known_.begin() || pc >= (*std::prev(after))->module.limit) {
    Address start = pc & ~Address{UnwindModules::kPieceBytes - 1};
    Address limit = std::max(start + UnwindModules::kPieceBytes, start | (UnwindModules::kPieceBytes - 1));  // the topmost wraps
    if (after != known_.begin()) start = std::max(start, (*std::prev(after))->module.limit);
    if (after != known_.end()) limit = std::min(limit, (*after)->module.start);
    return AddUnknown(pc, start, limit);
  }
  Known& known = **std::prev(after);
  const auto piece = static_cast<std::size_t>((pc - known.module.start) / UnwindModules::kPieceBytes);
  if (known.tables[piece] != nullptr) return false;
  BuildPiece(known, piece);
  return true;
}

// Remembers the code around `pc`, at most from `start` to `limit`.
bool CfiModules::AddUnknown(Address pc, Address start, Address limit) {
  if (is_complete_) return false;
  const auto after =
      std::upper_bound(unknown_.begin(), unknown_.end(), pc, [](Address address, const Range& range) { return address < range.start; });
  if (after != unknown_.begin()) {
    if (pc < std::prev(after)->limit) return false;
    start = std::max(start, std::prev(after)->limit);
  }
  if (after != unknown_.end()) limit = std::min(limit, after->start);
  if (pc < limit) unknown_.insert(after, {start, limit});
  is_complete_ = pc >= limit || unknown_.size() >= kMaxUnknownRanges;  // no range holds the very last address
  return true;
}

void CfiModules::BuildAll() {
  is_complete_ = true;
  for (const auto& known : known_) {
    for (std::size_t piece = 0; piece < known->tables.size(); ++piece) {
      if (known->tables[piece] == nullptr) BuildPiece(*known, piece);
    }
  }
}

void CfiModules::BuildPiece(Known& known, std::size_t piece) {
  const Address first = known.module.start + piece * UnwindModules::kPieceBytes;
  const Address limit = std::min<Address>(first + UnwindModules::kPieceBytes, known.module.limit);
  CompiledCfi compiled =
      known.module.pdata_address != 0 ? CompilePdataPiece(known, first, limit) : CompileEhFramePiece(known, first, limit);
  const Address stack_end = known.module.stack_end;
  if (stack_end > first && stack_end <= limit) AddStackEnd(static_cast<std::uint32_t>(stack_end - first), compiled);
  known.statistics += compiled.statistics;
  known.tables[piece] = compiled.rows.empty() ? EmptyTable()
                                              : std::make_shared<const UnwindTable>(static_cast<std::uint32_t>(limit - first),
                                                                                    compiled.rows, std::move(compiled.specials));
  if (--known.pending == 0) known.index = std::vector<FdePlace>();
}

CompiledCfi CfiModules::CompileEhFramePiece(Known& known, Address first, Address limit) const {
  if (!std::exchange(known.has_index, true)) ReadIndex(known);
  const auto is_before = [](const FdePlace& place, Address offset) { return place.offset < offset; };
  auto begin = std::lower_bound(known.index.begin(), known.index.end(), first - known.module.start, is_before);
  const auto end = std::lower_bound(begin, known.index.end(), limit - known.module.start, is_before);
  // The function before the piece may reach into it.
  if (begin != known.index.begin()) begin = std::lower_bound(known.index.begin(), begin, std::prev(begin)->offset, is_before);
  std::vector<Address> fdes;
  fdes.reserve(static_cast<std::size_t>(end - begin));
  for (auto place = begin; place != end; ++place) fdes.push_back(known.index_base + static_cast<Address>(std::int64_t{place->fde}));
  std::sort(fdes.begin(), fdes.end());

  internal::CfiRows rows(architecture_, known.module.start, known.module.limit, first, limit);
  EhFrameReader reader(read_, kFdeWindowBytes);
  EhFrameReader cie_reader(read_, kCieWindowBytes);
  const std::size_t broken_cies = known.cies.broken();
  for (const Address fde : fdes) {
    const std::optional<EhFrameEntry> entry = reader.At(fde);
    if (!entry || entry->cie == 0) {
      rows.AddBroken(1);
    } else if (const internal::CfiEntry* cie = known.cies.At(cie_reader, entry->cie)) {
      rows.Add(*cie, entry->body);
    }
  }
  rows.AddBroken(known.cies.broken() - broken_cies);
  known.is_suspect |= reader.has_failed() || cie_reader.has_failed();
  CompiledCfi compiled = rows.Take();
  if (architecture_ == CfiArchitecture::kAarch64 && known.module.path == kVdsoPath) {
    std::vector<std::uint8_t> text(static_cast<std::size_t>(limit - first));
    text.resize(read_(first, text));
    AddAarch64SignalTrampolines(text, compiled);
  }
  return compiled;
}

CompiledCfi CfiModules::CompilePdataPiece(Known& known, Address first, Address limit) const {
  const Module& module = known.module;
  std::vector<std::uint8_t> text(static_cast<std::size_t>(limit - first));
  text.resize(read_(first, text));
  MemoryWindows memory(read_);
  const auto read = [&](std::uint32_t position, std::span<std::uint8_t> bytes) {
    const Address address = module.load_bias + position;
    if (address < first || address - first > text.size() || bytes.size() > text.size() - (address - first))
      return memory.Read(address, bytes);
    std::copy_n(text.begin() + static_cast<std::ptrdiff_t>(address - first), bytes.size(), bytes.begin());
    return bytes.size();
  };
  CompiledCfi compiled = CompilePdata({.read = read,
                                       .pdata = static_cast<std::uint32_t>(module.pdata_address - module.load_bias),
                                       .pdata_bytes = module.pdata_bytes,
                                       .text = static_cast<std::uint32_t>(first - module.load_bias),
                                       .text_limit = static_cast<std::uint32_t>(limit - module.load_bias)});
  known.is_suspect |= memory.has_failed();
  AddStackProbes(text, compiled);
  return compiled;
}

void CfiModules::ReadIndex(Known& known) const {
  if (known.module.unwind_address == 0) {
    if (known.module.eh_frame_address != 0) ScanForIndex(known, known.module.eh_frame_address);
  } else if (!ReadSortedIndex(known)) {
    std::array<std::uint8_t, 16> header{};
    const std::size_t got = read_(known.module.unwind_address, header);
    known.is_suspect |= got == 0;
    const Address eh_frame = EhFrameAddress(std::span(header).first(got), known.module.unwind_address);
    known.index.clear();
    if (eh_frame != 0) ScanForIndex(known, eh_frame);
  }
  const auto is_before = [](const FdePlace& a, const FdePlace& b) { return a.offset < b.offset; };
  if (!std::is_sorted(known.index.begin(), known.index.end(), is_before)) std::sort(known.index.begin(), known.index.end(), is_before);
  known.index.shrink_to_fit();
}

// By .eh_frame_hdr's binary search table; false where there is none that can be used.
bool CfiModules::ReadSortedIndex(Known& known) const {
  constexpr std::size_t kEntryBytes = 8;
  constexpr std::uint8_t kTableEncoding = 0x3B;  // four signed bytes, relative to the header: what all linkers write
  const Address address = known.module.unwind_address;
  std::array<std::uint8_t, 32> bytes{};
  const std::size_t got = read_(address, bytes);
  DwarfReader header({bytes.data(), got}, address);
  const auto version = header.Read<std::uint8_t>();
  const auto eh_frame_encoding = header.Read<std::uint8_t>();
  const auto count_encoding = header.Read<std::uint8_t>();
  const auto table_encoding = header.Read<std::uint8_t>();
  header.ReadPointer(eh_frame_encoding, address);
  const Address count = header.ReadPointer(count_encoding, address);
  if (!header.ok() || version != 1 || table_encoding != kTableEncoding || count == 0 || count > kMaxEhFrameBytes / kEntryBytes)
    return false;
  known.index_base = address;
  std::vector<std::uint8_t> chunk;
  Address next = header.address();
  for (Address left = count; left > 0;) {
    chunk.resize(std::min<std::size_t>(static_cast<std::size_t>(left) * kEntryBytes, kScanWindowBytes));
    if (read_(next, chunk) < chunk.size()) return false;
    DwarfReader entries(chunk, next);
    while (entries.remaining() > 0) {
      const Address begin = address + static_cast<Address>(std::int64_t{entries.Read<std::int32_t>()});
      const auto fde = entries.Read<std::int32_t>();
      if (begin < known.module.start || begin >= known.module.limit) continue;
      known.index.push_back({static_cast<std::uint32_t>(begin - known.module.start), fde});
    }
    next += chunk.size();
    left -= chunk.size() / kEntryBytes;
  }
  return true;
}

void CfiModules::ScanForIndex(Known& known, Address eh_frame) const {
  known.index_base = eh_frame;
  EhFrameReader reader(read_, kScanWindowBytes);
  EhFrameReader cie_reader(read_, kCieWindowBytes);
  const std::uint64_t bytes = known.module.eh_frame_bytes == 0 ? kMaxEhFrameBytes : std::min(known.module.eh_frame_bytes, kMaxEhFrameBytes);
  Address next = eh_frame;
  while (next - eh_frame < bytes) {
    std::optional<EhFrameEntry> entry = reader.At(next);
    if (!entry || entry->is_terminator) break;
    const Address at = std::exchange(next, entry->next);
    const internal::CfiEntry* cie = entry->cie == 0 ? nullptr : known.cies.At(cie_reader, entry->cie);
    internal::FdeRange range;
    if (cie == nullptr || !internal::ReadFdeRange(*cie, entry->body, range)) continue;
    if (range.begin < known.module.start || range.begin >= known.module.limit) continue;
    known.index.push_back({static_cast<std::uint32_t>(range.begin - known.module.start), static_cast<std::int32_t>(at - eh_frame)});
  }
  known.is_suspect |= reader.has_failed();
}

std::shared_ptr<const UnwindModules> CfiModules::Snapshot() const {
  std::vector<UnwindModules::Entry> entries;
  for (const auto& known : known_) {
    for (std::size_t piece = 0; piece < known->tables.size(); ++piece) {
      const Address first = known->module.start + piece * UnwindModules::kPieceBytes;
      const Address limit = std::min<Address>(first + UnwindModules::kPieceBytes, known->module.limit);
      entries.push_back({first, limit, known->tables[piece]});
    }
  }
  for (const Range& range : unknown_) entries.push_back({range.start, range.limit, EmptyTable()});
  return std::make_shared<const UnwindModules>(std::move(entries), is_complete_, cache_);
}

std::string CfiModules::unread() const {
  for (const auto& known : known_) {
    if (known->is_suspect && known->statistics.fdes == 0) return known->module.path;
  }
  return "";
}

std::size_t CfiModules::built() const {
  std::size_t count = 0;
  for (const auto& known : known_) count += known->tables.size() - known->pending;
  return count;
}

CfiStatistics CfiModules::statistics() const {
  CfiStatistics sum;
  for (const auto& known : known_) sum += known->statistics;
  return sum;
}

std::size_t CfiModules::memory_bytes() const {
  std::size_t bytes = 0;
  for (const auto& known : known_) {
    bytes += sizeof(Known) + known->index.capacity() * sizeof(FdePlace) + known->tables.capacity() * sizeof(known->tables[0]);
  }
  return bytes;
}

}  // namespace strobe
