// CfiModules. Some 450 lines long because every way to fill `Known` is here.
#include "strobe/unwind/cfi_modules.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <iterator>
#include <limits>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "cfi_rows.h"
#include "debug_frame.h"
#include "dwarf_reader.h"
#include "eh_frame_reader.h"
#include "strobe/core/memory_windows.h"
#include "strobe/unwind/known_code.h"
#include "strobe/unwind/pdata_compiler.h"

namespace strobe::internal {
namespace {

// FDEs of neighbouring functions mostly lie next to one another.
constexpr std::size_t kFdeWindowBytes = std::size_t{1} << 14;
constexpr std::size_t kCieWindowBytes = 256;
constexpr std::size_t kScanWindowBytes = std::size_t{1} << 17;

// One function: where its code begins, and where its FDE lies.
struct FdePlace {
  std::uint32_t offset = 0;  // from the start of the module's text
  std::int32_t fde = 0;      // from Source::base
};

// The gap between two functions is shorter, unless one of them is assembler without frame
// information.
constexpr std::uint32_t kLeastStretchBytes = 32;

constexpr std::size_t ChunksOf(const Module& module) {
  return static_cast<std::size_t>((module.limit - module.start + UnwindModules::kChunkBytes - 1) /
                                  UnwindModules::kChunkBytes);
}

// Not a static of a function: a fork during the function's first call would leave the static locked
// in the child.
const std::shared_ptr<const UnwindTable>& EmptyTable() {
  using Table = const std::shared_ptr<const UnwindTable>;
  static constinit std::atomic<Table*> table{nullptr};
  if (Table* known = table.load(std::memory_order_acquire)) return *known;
  auto own = std::make_unique<Table>(std::make_shared<const UnwindTable>());
  Table* known = nullptr;
  return table.compare_exchange_strong(known, own.get(), std::memory_order_acq_rel) ? *own.release()
                                                                                    : *known;
}

bool IsBefore(const FdePlace& a, const FdePlace& b) { return a.offset < b.offset; }
void Sort(std::vector<FdePlace>& index) {
  if (!std::is_sorted(index.begin(), index.end(), IsBefore))
    std::sort(index.begin(), index.end(), IsBefore);
  index.shrink_to_fit();
}

// The address at which readers of .debug_frame place it. It is not mapped; any but 0 would do.
constexpr Address kDebugFrameBase = 4096;

}  // namespace

struct CfiModules::Source {
  explicit Source(Architecture architecture) : cies(architecture) {}

  Address base = 0;
  std::vector<FdePlace> index;  // sorted by offset
  CieCache cies;
};

struct CfiModules::Known {
  Known(Architecture architecture, const Module& of)
      : module(of),
        in_memory(architecture),
        in_file(architecture),
        tables(ChunksOf(of)),
        pending(tables.size()) {}

  const Module module;
  Source in_memory;                       // .eh_frame
  Source in_file;                         // .debug_frame, of functions that .eh_frame does not have
  std::vector<std::uint8_t> debug_frame;  // what in_file refers to
  std::vector<std::shared_ptr<const UnwindTable>> tables;  // one a chunk; null while not built
  std::size_t pending;                                     // chunks that are not built
  bool has_index = false;
  bool is_suspect =
      false;  // something could not be read: perhaps because the module was just being unloaded
  CfiStatistics statistics;
};

CfiModules::CfiModules(Architecture architecture, AnyMemoryReader read,
                       ReadDebugFrame read_debug_frame)
    : architecture_(architecture),
      read_(std::move(read)),
      read_debug_frame_(std::move(read_debug_frame)) {}
CfiModules::~CfiModules() = default;

void CfiModules::Update(const ModuleMap& map) {
  // If memory runs out here, nothing is known until the next Update.
  const bool was_cut_short = std::exchange(is_cut_short_, true);
  auto former = std::exchange(known_, {});
  auto unknown = std::exchange(unknown_, {});
  std::vector<std::unique_ptr<Known>> now;
  // JIT compilers load and unload often. Ranges that no module covers stay unknown.
  std::erase_if(unknown, [&](const Range& range) {
    return range.is_module || Overlaps(map.modules(), range.start, range.limit);
  });
  auto before = former.begin();  // both are sorted by start
  for (const Module& module : map.modules()) {
    const bool has_nothing = module.unwind_address == 0 && module.eh_frame_address == 0 &&
                             module.pdata_address == 0 && module.stack_end == 0 &&
                             module.kind != ModuleKind::kVdso && !MayHaveDebugFrame(module);
    if (has_nothing || module.limit - module.start > std::numeric_limits<std::uint32_t>::max()) {
      unknown.push_back({module.start, module.limit, /*is_module=*/true});
      continue;
    }
    while (before != former.end() && (*before)->module.start < module.start) ++before;
    const bool is_same =
        before != former.end() && (*before)->module == module && !(*before)->is_suspect;
    now.push_back(is_same ? std::move(*before++) : std::make_unique<Known>(architecture_, module));
  }
  std::sort(unknown.begin(), unknown.end(),
            [](const Range& a, const Range& b) { return a.start < b.start; });
  // The cache may have rules of modules that were dropped: a new cache replaces it.
  if (was_cut_short ||
      std::any_of(former.begin(), former.end(), [](const auto& known) { return known != nullptr; }))
    cache_ = std::make_shared<RuleCache>();
  known_ = std::move(now);
  unknown_ = std::move(unknown);
  is_complete_ = unknown_.size() >= kMaxUnknownRanges;
  is_cut_short_ = false;
}

bool CfiModules::Build(Address pc) {
  const auto after = std::upper_bound(known_.begin(), known_.end(), pc,
                                      [](Address address, const std::unique_ptr<Known>& known) {
                                        return address < known->module.start;
                                      });
  if (after == known_.begin() || pc >= (*std::prev(after))->module.limit) {
    Address start = pc & ~Address{UnwindModules::kChunkBytes - 1};
    Address limit = std::max(start + UnwindModules::kChunkBytes,
                             start | (UnwindModules::kChunkBytes - 1));  // the topmost wraps
    if (after != known_.begin()) start = std::max(start, (*std::prev(after))->module.limit);
    if (after != known_.end()) limit = std::min(limit, (*after)->module.start);
    return AddUnknown(pc, start, limit);
  }
  Known& known = **std::prev(after);
  const auto chunk =
      static_cast<std::size_t>((pc - known.module.start) / UnwindModules::kChunkBytes);
  if (known.tables[chunk] != nullptr) return false;
  BuildChunk(known, chunk);
  return true;
}

// Remembers that the code around `pc`, at most from `start` to `limit`, is unknown.
bool CfiModules::AddUnknown(Address pc, Address start, Address limit) {
  if (is_complete_) return false;
  const auto after =
      std::upper_bound(unknown_.begin(), unknown_.end(), pc,
                       [](Address address, const Range& range) { return address < range.start; });
  if (after != unknown_.begin()) {
    if (pc < std::prev(after)->limit) return false;
    start = std::max(start, std::prev(after)->limit);
  }
  if (after != unknown_.end()) limit = std::min(limit, after->start);
  if (pc < limit) unknown_.insert(after, {start, limit, /*is_module=*/false});
  is_complete_ =
      pc >= limit || unknown_.size() >= kMaxUnknownRanges;  // no range holds the very last address
  return true;
}

void CfiModules::BuildAll() {
  is_complete_ = true;
  for (const auto& known : known_) {
    for (std::size_t chunk = 0; chunk < known->tables.size(); ++chunk) {
      if (known->tables[chunk] == nullptr) BuildChunk(*known, chunk);
    }
  }
}

void CfiModules::BuildChunk(Known& known, std::size_t chunk) {
  const Address first = known.module.start + chunk * UnwindModules::kChunkBytes;
  const Address limit = std::min<Address>(first + UnwindModules::kChunkBytes, known.module.limit);
  CompiledCfi compiled = known.module.pdata_address != 0 ? CompilePdataChunk(known, first, limit)
                                                         : CompileEhFrameChunk(known, first, limit);
  const Address stack_end = known.module.stack_end;
  if (stack_end > first && stack_end <= limit)
    AddStackEnd(static_cast<std::uint32_t>(stack_end - first), compiled);
  known.statistics += compiled.statistics;
  known.tables[chunk] = compiled.rows.empty() ? EmptyTable()
                                              : std::make_shared<const UnwindTable>(
                                                    static_cast<std::uint32_t>(limit - first),
                                                    compiled.rows, std::move(compiled.specials));
  if (--known.pending != 0) return;
  known.in_memory.index = std::vector<FdePlace>();
  known.in_file.index = std::vector<FdePlace>();
  known.debug_frame = std::vector<std::uint8_t>();
}

void CfiModules::AddRows(const Known& known, Source& source, Address first, Address limit,
                         EhFrameReader& reader, EhFrameReader& cie_reader, CfiRows& rows) {
  const auto is_before = [](const FdePlace& place, Address offset) {
    return place.offset < offset;
  };
  auto begin = std::lower_bound(source.index.begin(), source.index.end(),
                                first - known.module.start, is_before);
  const auto end =
      std::lower_bound(begin, source.index.end(), limit - known.module.start, is_before);
  // The last function that begins before the chunk may reach into it.
  if (begin != source.index.begin())
    begin = std::lower_bound(source.index.begin(), begin, std::prev(begin)->offset, is_before);
  std::vector<Address> fdes;
  fdes.reserve(static_cast<std::size_t>(end - begin));
  for (auto place = begin; place != end; ++place)
    fdes.push_back(source.base + static_cast<Address>(std::int64_t{place->fde}));
  std::sort(fdes.begin(), fdes.end());

  const std::size_t broken_cies = source.cies.broken();
  for (const Address fde : fdes) {
    const std::optional<EhFrameEntry> entry = reader.At(fde);
    if (!entry || entry->cie == 0) {
      rows.AddBroken(1);
    } else if (const CfiEntry* cie = source.cies.At(cie_reader, entry->cie)) {
      rows.Add(*cie, entry->body);
    }
  }
  rows.AddBroken(source.cies.broken() - broken_cies);
}

CompiledCfi CfiModules::CompileEhFrameChunk(Known& known, Address first, Address limit) const {
  if (!known.has_index) ReadIndex(known);
  known.has_index = true;
  CfiRows rows(architecture_, known.module.start, known.module.limit, first, limit);
  EhFrameReader reader(read_, kFdeWindowBytes);
  EhFrameReader cie_reader(read_, kCieWindowBytes);
  AddRows(known, known.in_memory, first, limit, reader, cie_reader, rows);
  if (!known.in_file.index.empty()) {
    EhFrameReader file_reader(known.debug_frame, kDebugFrameBase);
    EhFrameReader file_cie_reader(known.debug_frame, kDebugFrameBase);
    AddRows(known, known.in_file, first, limit, file_reader, file_cie_reader, rows);
  }
  known.is_suspect |= reader.has_failed() || cie_reader.has_failed();
  CompiledCfi compiled = rows.Take();
  if (architecture_ == Architecture::kAarch64 && known.module.kind == ModuleKind::kVdso) {
    std::vector<std::uint8_t> text(static_cast<std::size_t>(limit - first));
    text.resize(read_(first, text));
    AddAarch64SignalTrampolines(text, compiled);
  }
  if (architecture_ == Architecture::kX86_64) {
    std::vector<std::uint8_t> text;
    for (const UnknownStretch& stretch : UnknownStretches(
             compiled, static_cast<std::uint32_t>(limit - first), kLeastStretchBytes)) {
      text.resize(stretch.end - stretch.begin);
      text.resize(read_(first + stretch.begin, text));
      AddCoroutineEnds(stretch.begin, text, compiled);
    }
  }
  return compiled;
}

CompiledCfi CfiModules::CompilePdataChunk(Known& known, Address first, Address limit) const {
  const Module& module = known.module;
  std::vector<std::uint8_t> text(static_cast<std::size_t>(limit - first));
  text.resize(read_(first, text));
  MemoryWindows memory(read_);
  const auto read = [&](Address position, std::span<std::uint8_t> bytes) {
    const Address address = module.load_bias + position;
    if (address < first || address - first > text.size() ||
        bytes.size() > text.size() - (address - first))
      return memory(address, bytes);
    std::copy_n(text.begin() + static_cast<std::ptrdiff_t>(address - first), bytes.size(),
                bytes.begin());
    return bytes.size();
  };
  CompiledCfi compiled =
      CompilePdata({.read = read,
                    .pdata = static_cast<std::uint32_t>(module.pdata_address - module.load_bias),
                    .pdata_bytes = module.pdata_bytes,
                    .text = static_cast<std::uint32_t>(first - module.load_bias),
                    .text_limit = static_cast<std::uint32_t>(limit - module.load_bias)});
  known.is_suspect |= memory.has_failed();
  AddStackProbes(text, compiled);
  return compiled;
}

void CfiModules::ReadIndex(Known& known) const {
  // An earlier call may have run out of memory and left a part of the index.
  known.in_memory = Source(architecture_);
  known.in_file = Source(architecture_);
  if (known.module.unwind_address == 0) {
    if (known.module.eh_frame_address != 0) ScanForIndex(known, known.module.eh_frame_address);
  } else if (!ReadSortedIndex(known)) {
    std::array<std::uint8_t, 16> header{};
    const std::size_t got = read_(known.module.unwind_address, header);
    known.is_suspect |= got == 0;
    const Address eh_frame =
        EhFrameAddress(std::span(header).first(got), known.module.unwind_address);
    known.in_memory.index.clear();
    if (eh_frame != 0) ScanForIndex(known, eh_frame);
  }
  Sort(known.in_memory.index);
  if (MayHaveDebugFrame(known.module)) ReadDebugIndex(known);
}

// Adds the functions that only the file's .debug_frame has.
void CfiModules::ReadDebugIndex(Known& known) const {
  known.debug_frame = read_debug_frame_(known.module);
  MakeEhFrame(known.debug_frame, known.module.load_bias);
  if (known.debug_frame.empty()) return;
  known.in_file.base = kDebugFrameBase;
  EhFrameReader reader(known.debug_frame, kDebugFrameBase);
  EhFrameReader cie_reader(known.debug_frame, kDebugFrameBase);
  Scan(known, known.in_file, known.debug_frame.size(), reader, cie_reader);
  std::erase_if(known.in_file.index, [&](const FdePlace& place) {
    return std::binary_search(known.in_memory.index.begin(), known.in_memory.index.end(), place,
                              IsBefore);
  });
  Sort(known.in_file.index);
  if (known.in_file.index.empty())
    known.debug_frame = std::vector<std::uint8_t>();  // .eh_frame has all of them
}

// Reads .eh_frame_hdr's binary search table; false if there is none that can be used.
bool CfiModules::ReadSortedIndex(Known& known) const {
  constexpr std::size_t kEntryBytes = 8;
  constexpr std::uint8_t kTableEncoding =
      0x3B;  // four signed bytes, relative to the header: what all linkers write
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
  if (!header.ok() || version != 1 || table_encoding != kTableEncoding || count == 0 ||
      count > kMaxEhFrameBytes / kEntryBytes)
    return false;
  known.in_memory.base = address;
  std::vector<std::uint8_t> chunk;
  Address next = header.address();
  for (Address left = count; left > 0;) {
    chunk.resize(
        std::min<std::size_t>(static_cast<std::size_t>(left) * kEntryBytes, kScanWindowBytes));
    if (read_(next, chunk) < chunk.size()) return false;
    DwarfReader entries(chunk, next);
    while (entries.remaining() > 0) {
      const Address begin =
          address + static_cast<Address>(std::int64_t{entries.Read<std::int32_t>()});
      const auto fde = entries.Read<std::int32_t>();
      if (begin < known.module.start || begin >= known.module.limit) continue;
      known.in_memory.index.push_back(
          {static_cast<std::uint32_t>(begin - known.module.start), fde});
    }
    next += chunk.size();
    left -= chunk.size() / kEntryBytes;
  }
  return true;
}

void CfiModules::ScanForIndex(Known& known, Address eh_frame) const {
  known.in_memory.base = eh_frame;
  EhFrameReader reader(read_, kScanWindowBytes);
  EhFrameReader cie_reader(read_, kCieWindowBytes);
  const std::uint64_t bytes = known.module.eh_frame_bytes == 0
                                  ? kMaxEhFrameBytes
                                  : std::min(known.module.eh_frame_bytes, kMaxEhFrameBytes);
  Scan(known, known.in_memory, bytes, reader, cie_reader);
  known.is_suspect |= reader.has_failed();
}

void CfiModules::Scan(const Known& known, Source& source, std::uint64_t bytes,
                      EhFrameReader& reader, EhFrameReader& cie_reader) {
  Address next = source.base;
  while (next - source.base < bytes) {
    std::optional<EhFrameEntry> entry = reader.At(next);
    if (!entry || entry->is_terminator) break;
    const Address at = std::exchange(next, entry->next);
    const CfiEntry* cie = entry->cie == 0 ? nullptr : source.cies.At(cie_reader, entry->cie);
    FdeRange range;
    if (cie == nullptr || !ReadFdeRange(*cie, entry->body, range)) continue;
    if (range.begin < known.module.start || range.begin >= known.module.limit) continue;
    source.index.push_back({static_cast<std::uint32_t>(range.begin - known.module.start),
                            static_cast<std::int32_t>(at - source.base)});
  }
}

std::shared_ptr<const UnwindModules> CfiModules::Snapshot() const {
  std::vector<UnwindModules::Entry> entries;
  for (const auto& known : known_) {
    for (std::size_t chunk = 0; chunk < known->tables.size(); ++chunk) {
      const Address first = known->module.start + chunk * UnwindModules::kChunkBytes;
      const Address limit =
          std::min<Address>(first + UnwindModules::kChunkBytes, known->module.limit);
      entries.push_back({first, limit, known->tables[chunk]});
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
    bytes +=
        sizeof(Known) +
        (known->in_memory.index.capacity() + known->in_file.index.capacity()) * sizeof(FdePlace) +
        known->debug_frame.capacity() + known->tables.capacity() * sizeof(known->tables[0]);
  }
  return bytes;
}

}  // namespace strobe::internal
