#include "elf_file.h"

#include <zlib.h>

#include <algorithm>
#include <bit>
#include <limits>
#include <numeric>
#include <utility>

#include "absl/strings/escaping.h"

namespace strobe::internal {
namespace {

// The file's structures are read as they lie there.
static_assert(std::endian::native == std::endian::little);

struct Header {
  unsigned char magic[4], file_class, encoding, ident_version, abi, padding[8];
  std::uint16_t type, machine;
  std::uint32_t version;
  std::uint64_t entry, segments_offset, sections_offset;
  std::uint32_t flags;
  std::uint16_t header_size, segment_size, segment_count, section_size, section_count,
      section_names;
};
static_assert(sizeof(Header) == 64);

struct NoteHeader {
  std::uint32_t name_size, description_size, type;
};

struct CompressionHeader {
  std::uint32_t type, reserved;
  std::uint64_t size, alignment;
};

struct Relocation {
  std::uint64_t offset;
  std::uint32_t type, symbol;
  std::uint64_t addend;
};
static_assert(sizeof(Relocation) == 24);

constexpr std::uint16_t kMachineX86_64 = 62;
constexpr std::uint16_t kMachineAarch64 = 183;
constexpr std::uint32_t kSectionProgramBits = 1;
constexpr std::uint32_t kSectionSymtab = 2;
constexpr std::uint32_t kSectionStrtab = 3;
constexpr std::uint32_t kSectionRelocations = 4;
constexpr std::uint32_t kSectionNote = 7;
constexpr std::uint32_t kSectionDynsym = 11;
constexpr std::uint64_t kSectionLoaded = 2;
constexpr std::uint64_t kSectionExecutable = 4;
constexpr std::uint64_t kSectionCompressed = 0x800;
constexpr std::uint32_t kSegmentLoad = 1;
constexpr std::uint32_t kSegmentNote = 4;
constexpr std::uint32_t kNoteBuildId = 3;
constexpr char kVersionMark = '@';
constexpr std::string_view kLinkageTableName = ".plt";  // and .plt.sec, .plt.got
constexpr std::string_view kLinkageSuffix = "@plt";
constexpr unsigned char kSymbolFunction = 2;
constexpr unsigned char kSymbolIndirectFunction = 10;
constexpr std::uint16_t kSectionUndefined = 0;
constexpr std::size_t kMaxBuildIdBytes = 64;
constexpr std::size_t kSymbolsPerWindow = std::size_t{1} << 15;
constexpr std::size_t kNameWindowBytes = std::size_t{1} << 20;
static_assert(kNameWindowBytes >= FunctionTable::kMaxNameBytes);
constexpr std::string_view kNameEnds("\0@", 2);  // the string's, and where a version begins
constexpr std::uint64_t kUnknownEnd = std::numeric_limits<std::uint64_t>::max();

template <class T>
bool ReadOne(const ByteSource& source, std::uint64_t offset, T& value) {
  return source.ReadAt(offset, std::as_writable_bytes(std::span(&value, 1)));
}

template <class T>
bool ReadArray(const ByteSource& source, std::uint64_t offset, std::uint64_t count,
               std::vector<T>& values) {
  if (offset > source.size() || count > (source.size() - offset) / sizeof(T)) return false;
  values.resize(count);
  return source.ReadAt(offset, std::as_writable_bytes(std::span(values)));
}

// The content of a compressed section; empty where it cannot be had.
std::vector<std::uint8_t> Inflate(std::span<const std::uint8_t> section, std::size_t max_bytes) {
  constexpr std::uint32_t kZlib = 1;
  CompressionHeader header;
  if (section.size() < sizeof(header)) return {};
  std::memcpy(&header, section.data(), sizeof(header));
  if (header.type != kZlib || header.size > max_bytes) return {};
  std::vector<std::uint8_t> bytes(header.size);
  uLongf inflated = bytes.size();
  const std::span<const std::uint8_t> deflated = section.subspan(sizeof(header));
  if (uncompress(bytes.data(), &inflated, deflated.data(), deflated.size()) != Z_OK) return {};
  bytes.resize(inflated);
  return bytes;
}

}  // namespace

std::optional<ElfFile> ElfFile::Open(const ByteSource& source) {
  ElfFile file(source);
  if (!file.ReadHeaders()) return std::nullopt;
  file.ReadBuildId();
  return file;
}

bool ElfFile::ReadHeaders() {
  Header header;
  constexpr std::string_view kMagic =
      "\x7f"
      "ELF";
  if (!ReadOne(*source_, 0, header) ||
      std::string_view(reinterpret_cast<const char*>(header.magic), 4) != kMagic)
    return false;
  constexpr unsigned char kClass64 = 2;
  constexpr unsigned char kLittleEndian = 1;
  if (header.file_class != kClass64 || header.encoding != kLittleEndian) return false;
  if (header.machine != kMachineX86_64 && header.machine != kMachineAarch64) return false;
  machine_ = header.machine;
  section_names_ = header.section_names;
  if (header.segment_count != 0 && header.segment_size == sizeof(Segment)) {
    ReadArray(*source_, header.segments_offset, header.segment_count, segments_);
  }
  std::uint64_t section_count = header.section_count;
  if (header.section_size == sizeof(Section) && header.sections_offset != 0) {
    Section first;  // holds the number of sections where the header has no room for it
    if (section_count == 0 && ReadOne(*source_, header.sections_offset, first))
      section_count = first.size;
    if (section_count <= kMaxSections)
      ReadArray(*source_, header.sections_offset, section_count, sections_);
  }
  for (const Section& section : sections_) {
    if (section.entry_size != sizeof(Symbol) || section.size < sizeof(Symbol)) continue;
    const Symbols kind = section.type == kSectionSymtab   ? Symbols::kFull
                         : section.type == kSectionDynsym ? Symbols::kDynamic
                                                          : Symbols::kNone;
    if (kind > symbols_) {
      symbols_ = kind;
      symbol_section_ = &section;
    }
  }
  return true;
}

void ElfFile::ReadBuildId() {
  for (const Section& section : sections_) {
    if (section.type == kSectionNote &&
        ReadBuildId(section.offset, section.size, section.alignment))
      return;
  }
  for (const Segment& segment : segments_) {
    if (segment.type == kSegmentNote &&
        ReadBuildId(segment.offset, segment.file_size, segment.alignment))
      return;
  }
}

bool ElfFile::ReadBuildId(std::uint64_t offset, std::uint64_t size, std::uint64_t alignment) {
  std::vector<char> notes;
  if (size > kMaxNoteBytes || !ReadArray(*source_, offset, size, notes)) return false;
  const std::size_t unit = alignment == 8 ? 8 : 4;
  const auto padded = [unit](std::size_t bytes) { return (bytes + unit - 1) / unit * unit; };
  std::string_view rest(notes.data(), notes.size());
  NoteHeader note;
  while (rest.size() >= sizeof(note)) {
    std::memcpy(&note, rest.data(), sizeof(note));
    rest.remove_prefix(sizeof(note));
    const std::size_t name_bytes = padded(note.name_size);
    if (name_bytes > rest.size() || note.description_size > rest.size() - name_bytes) return false;
    if (note.type == kNoteBuildId &&
        rest.substr(0, note.name_size) == std::string_view("GNU\0", 4) &&
        note.description_size != 0 && note.description_size <= kMaxBuildIdBytes) {
      build_id_ = absl::BytesToHexString(
          absl::string_view(rest.data() + name_bytes, note.description_size));
      return true;
    }
    rest.remove_prefix(std::min(rest.size(), name_bytes + padded(note.description_size)));
  }
  return false;
}

bool ElfFile::Maps(std::uint64_t file_offset, std::uint64_t address) const {
  constexpr std::uint64_t kPageMask =
      ~std::uint64_t{0xFFF};  // a segment is mapped from the start of its first page
  return std::any_of(segments_.begin(), segments_.end(), [&](const Segment& segment) {
    return segment.type == kSegmentLoad &&
           address - file_offset == segment.address - segment.offset &&
           file_offset >= (segment.offset & kPageMask) &&
           file_offset - (segment.offset & kPageMask) <= segment.file_size;
  });
}

std::string_view ElfFile::SymbolTable::NameOf(std::size_t symbol) const {
  if (symbol >= symbols.size() || symbols[symbol].name >= names.size()) return {};
  return names.data() + symbols[symbol].name;
}

ElfFile::SymbolTable ElfFile::ReadSymbols(const Section& section) const {
  static_assert(sizeof(Symbol) == 24);
  SymbolTable table;
  const std::uint64_t count = section.size / sizeof(Symbol);
  if (section.link >= sections_.size() || count > kMaxSymbols) return {};
  const Section& strings = sections_[section.link];
  if (strings.type != kSectionStrtab || strings.size > kMaxStringTableBytes ||
      !ReadArray(*source_, strings.offset, strings.size, table.names) ||
      !ReadArray(*source_, section.offset, count, table.symbols)) {
    return {};
  }
  table.names.push_back('\0');
  std::replace(table.names.begin(), table.names.end(), kVersionMark, '\0');
  return table;
}

bool ElfFile::VisitFunctions(const Section& section, Functions& functions) const {
  const std::uint64_t count = section.size / sizeof(Symbol);
  if (section.offset > source_->size() ||
      count > (source_->size() - section.offset) / sizeof(Symbol))
    return true;
  std::vector<Symbol> window;
  for (std::uint64_t first = 0; first < count; first += window.size()) {
    if (first >= kMaxVisitedSymbols || functions.all.size() >= kMaxFunctions) return false;
    const std::uint64_t wanted = std::min<std::uint64_t>(count - first, kSymbolsPerWindow);
    if (!ReadArray(*source_, section.offset + first * sizeof(Symbol), wanted, window)) return true;
    for (const Symbol& symbol : window) {
      const unsigned char type = symbol.info & 0xF;
      if ((type != kSymbolFunction && type != kSymbolIndirectFunction) ||
          symbol.section == kSectionUndefined || symbol.value == 0)
        continue;
      std::uint64_t limit = kUnknownEnd;
      if (symbol.section < sections_.size()) {
        const Section& home = sections_[symbol.section];
        if (symbol.value < home.address || symbol.value - home.address >= home.size) continue;
        if (home.size <= kUnknownEnd - home.address) limit = home.address + home.size;
      }
      if (symbol.size == 0) functions.unsized.push_back(functions.all.size());
      const bool is_sized = symbol.size != 0 && symbol.size < limit - symbol.value;
      functions.all.push_back(
          {symbol.value, is_sized ? symbol.value + symbol.size : limit, symbol.name});
    }
  }
  return true;
}

bool ElfFile::ReadFunctionNames(const Section& strings,
                                std::vector<FunctionTable::Function>& functions,
                                std::vector<char>& names) const {
  std::vector<std::uint32_t> order(functions.size());
  std::iota(order.begin(), order.end(), 0U);
  std::sort(order.begin(), order.end(), [&](std::uint32_t a, std::uint32_t b) {
    return functions[a].name < functions[b].name;
  });
  names.assign(1, '\0');
  std::vector<char> window;
  std::uint64_t window_begin = 0;
  std::uint32_t last_place = 0;
  std::uint32_t last_name = 0;
  bool is_readable = true;
  bool is_whole = true;
  for (const std::uint32_t index : order) {
    const std::uint32_t place = std::exchange(functions[index].name, 0);
    if (place >= strings.size) continue;
    if (place == last_place) {
      functions[index].name = last_name;
      continue;
    }
    last_place = place;
    last_name = 0;
    const std::uint64_t bytes =
        std::min<std::uint64_t>(strings.size - place, FunctionTable::kMaxNameBytes);
    if (window.empty() || place + bytes > window_begin + window.size()) {
      window_begin = place;
      const std::uint64_t wanted = std::min<std::uint64_t>(strings.size - place, kNameWindowBytes);
      is_readable = is_readable && ReadArray(*source_, strings.offset + place, wanted, window);
    }
    if (!is_readable) continue;
    std::string_view name(window.data() + (place - window_begin), bytes);
    name = name.substr(0, name.find_first_of(kNameEnds));
    if (name.empty()) continue;
    if (name.size() >= kMaxFunctionNameBytes - names.size()) {
      is_whole = false;
      continue;
    }
    functions[index].name = last_name = static_cast<std::uint32_t>(names.size());
    names.insert(names.end(), name.begin(), name.end());
    names.push_back('\0');
  }
  return is_whole;
}

FunctionTable ElfFile::ReadFunctions() const {
  if (symbol_section_ == nullptr || symbol_section_->link >= sections_.size()) return {};
  const Section& strings = sections_[symbol_section_->link];
  if (strings.type != kSectionStrtab || strings.offset > source_->size() ||
      strings.size > source_->size() - strings.offset)
    return {};
  Functions functions;
  std::vector<char> names;
  bool is_whole = VisitFunctions(*symbol_section_, functions);
  is_whole &= ReadFunctionNames(strings, functions.all, names);
  std::vector<std::uint64_t> starts;  // where a function of unknown size may end
  for (const FunctionTable::Function& function : functions.all) {
    if (function.name != 0) starts.push_back(function.address);
  }
  std::sort(starts.begin(), starts.end());
  for (const std::size_t index : functions.unsized) {
    FunctionTable::Function& function = functions.all[index];
    const auto next = std::upper_bound(starts.begin(), starts.end(), function.address);
    if (next != starts.end()) function.end = std::min(function.end, *next);
    if (function.end == kUnknownEnd) function.end = function.address + 1;
  }
  std::erase_if(functions.all,
                [](const FunctionTable::Function& function) { return function.name == 0; });
  FunctionTable table(std::move(functions.all), std::move(names));
  table.set_is_partial(!is_whole);
  return table;
}

std::vector<char> ElfFile::ReadSectionNames() const {
  std::vector<char> names;
  if (section_names_ >= sections_.size()) return names;
  const Section& strings = sections_[section_names_];
  if (strings.size > kMaxSectionNameBytes ||
      !ReadArray(*source_, strings.offset, strings.size, names))
    return {};
  names.push_back('\0');
  return names;
}

std::vector<std::uint8_t> ElfFile::ReadSection(std::string_view name, std::size_t max_bytes) const {
  const std::vector<char> names = ReadSectionNames();
  std::vector<std::uint8_t> bytes;
  for (const Section& section : sections_) {
    if (section.type != kSectionProgramBits || section.name >= names.size() ||
        names.data() + section.name != name)
      continue;
    if (section.size > max_bytes || !ReadArray(*source_, section.offset, section.size, bytes))
      return {};
    return (section.flags & kSectionCompressed) == 0 ? bytes : Inflate(bytes, max_bytes);
  }
  return bytes;
}

std::vector<LinkageStub> ElfFile::FindLinkageStubs() const {
  std::vector<LinkageStub> stubs;
  const std::vector<char> names = ReadSectionNames();
  std::uint64_t bytes_left = kMaxLinkageTableBytes;
  for (const Section& section : sections_) {
    if (section.type != kSectionProgramBits || (section.flags & kSectionExecutable) == 0 ||
        section.name >= names.size())
      continue;
    if (!std::string_view(names.data() + section.name, names.size() - section.name)
             .starts_with(kLinkageTableName))
      continue;
    std::vector<std::byte> code;
    if (section.size > bytes_left || !ReadArray(*source_, section.offset, section.size, code))
      continue;
    bytes_left -= section.size;
    const std::vector<LinkageStub> found = machine_ == kMachineX86_64
                                               ? FindX86LinkageStubs(section.address, code)
                                               : FindAarch64LinkageStubs(section.address, code);
    stubs.insert(stubs.end(), found.begin(), found.end());
  }
  return stubs;
}

FunctionTable ElfFile::ReadLinkageStubs(const FunctionTable& functions) const {
  std::vector<LinkageStub> stubs = FindLinkageStubs();
  if (stubs.empty()) return {};
  std::sort(stubs.begin(), stubs.end(),
            [](const LinkageStub& a, const LinkageStub& b) { return a.slot < b.slot; });
  stubs.erase(std::unique(stubs.begin(), stubs.end(),
                          [](const auto& a, const auto& b) { return a.slot == b.slot; }),
              stubs.end());
  const auto dynamic = std::find_if(sections_.begin(), sections_.end(),
                                    [](const Section& s) { return s.type == kSectionDynsym; });
  const SymbolTable symbols = dynamic == sections_.end() ? SymbolTable() : ReadSymbols(*dynamic);
  std::vector<FunctionTable::Function> named;
  std::vector<char> names;
  std::uint64_t relocations_left = kMaxRelocations;
  for (const Section& section : sections_) {
    if (section.type != kSectionRelocations || (section.flags & kSectionLoaded) == 0) continue;
    std::vector<Relocation> relocations;
    const std::uint64_t count = section.size / sizeof(Relocation);
    if (count > relocations_left || !ReadArray(*source_, section.offset, count, relocations))
      continue;
    relocations_left -= count;
    for (const Relocation& relocation : relocations) {
      const auto stub =
          std::lower_bound(stubs.begin(), stubs.end(), relocation.offset,
                           [](const LinkageStub& a, std::uint64_t slot) { return a.slot < slot; });
      if (stub == stubs.end() || stub->slot != relocation.offset) continue;
      // Without a symbol, the slot gets the address of a function of the image itself, or what that
      // function returns.
      const std::string_view target = relocation.symbol != 0 ? symbols.NameOf(relocation.symbol)
                                                             : functions.Find(relocation.addend);
      if (target.empty() || names.size() + target.size() > kMaxStringTableBytes) continue;
      named.push_back({stub->address, stub->end, static_cast<std::uint32_t>(names.size())});
      names.insert(names.end(), target.begin(), target.end());
      names.insert(names.end(), kLinkageSuffix.begin(), kLinkageSuffix.end());
      names.push_back('\0');
    }
  }
  return FunctionTable(std::move(named), std::move(names));
}

}  // namespace strobe::internal
