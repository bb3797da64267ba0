#include "elf_file.h"

#include <algorithm>
#include <string>

#include "core/elf_notes.h"
#include "elf_format.h"
#include "strobe/base/page.h"

namespace strobe::internal {
namespace {

struct ElfHeader {
  unsigned char magic[4], file_class, encoding, ident_version, abi, padding[8];
  std::uint16_t type, machine;
  std::uint32_t version;
  std::uint64_t entry, segments_offset, sections_offset;
  std::uint32_t flags;
  std::uint16_t header_size, segment_size, segment_count, section_size, section_count,
      section_names;
};
static_assert(sizeof(ElfHeader) == 64);

constexpr std::uint32_t kSectionNote = 7;
constexpr std::uint64_t kSectionCompressed = 0x800;
constexpr std::uint32_t kSegmentNote = 4;

}  // namespace

std::optional<ElfFile> ElfFile::Open(const ByteSource& source) {
  ElfFile file(source);
  if (!file.ReadHeaders()) return std::nullopt;
  file.ReadBuildId();
  return file;
}

bool ElfFile::ReadHeaders() {
  ElfHeader header;
  constexpr std::string_view kMagic =
      "\x7f"
      "ELF";
  if (!ReadOne(*source_, 0, header) ||
      std::string_view(reinterpret_cast<const char*>(header.magic), 4) != kMagic)
    return false;
  constexpr unsigned char kClass64 = 2;
  constexpr unsigned char kLittleEndian = 1;
  if (header.file_class != kClass64 || header.encoding != kLittleEndian) return false;
  const std::optional<Architecture> architecture = ArchitectureOfElf(header.machine);
  if (!architecture) return false;
  architecture_ = *architecture;
  section_names_ = header.section_names;
  if (header.segment_count != 0 && header.segment_size == sizeof(Segment)) {
    ReadArray(*source_, header.segments_offset, header.segment_count, segments_);
  }
  std::uint64_t section_count = header.section_count;
  if (header.section_size == sizeof(Section) && header.sections_offset != 0) {
    Section first;  // its size is the number of sections if the header has no room for that
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
  std::vector<std::uint8_t> notes;
  if (size > kMaxNoteBytes || !ReadArray(*source_, offset, size, notes)) return false;
  build_id_ = BuildIdIn(notes, alignment);
  return !build_id_.empty();
}

bool ElfFile::Segment::is_code() const {
  return type == kSegmentLoad && (flags & kSegmentExecutable) != 0;
}

bool ElfFile::Segment::Holds(std::uint64_t file_offset) const {
  // A segment is mapped from the start of its first page.
  constexpr std::uint64_t kPageMask = ~std::uint64_t{0xFFF};
  return type == kSegmentLoad && file_offset >= (offset & kPageMask) &&
         (file_offset < offset || file_offset - offset <= file_size);
}

bool ElfFile::Maps(std::uint64_t file_offset, std::uint64_t address) const {
  return std::any_of(segments_.begin(), segments_.end(), [&](const Segment& segment) {
    return address - file_offset == segment.address - segment.offset && segment.Holds(file_offset);
  });
}

std::optional<std::uint64_t> ElfFile::AddressAt(std::uint64_t file_offset) const {
  for (const Segment& segment : segments_) {
    if (segment.is_code() && segment.Holds(file_offset))
      return segment.address - segment.offset + file_offset;
  }
  return std::nullopt;
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

std::optional<ElfFile::SectionPlace> ElfFile::FindSection(std::string_view name) const {
  constexpr std::string_view kDebug = ".debug_";
  const std::vector<char> names = ReadSectionNames();
  // The same, compressed, as older tools call it.
  const std::string gnu_name = name.starts_with(kDebug)
                                   ? std::string(".zdebug_").append(name.substr(kDebug.size()))
                                   : std::string();
  for (const Section& section : sections_) {
    const bool has_bytes = section.type == kSectionProgramBits || section.type == kSectionX86Unwind;
    if (!has_bytes || section.name >= names.size()) continue;
    const std::string_view found = names.data() + section.name;
    const bool is_gnu = !gnu_name.empty() && found == gnu_name;
    if (found != name && !is_gnu) continue;
    if (section.offset > source_->size() || section.size > source_->size() - section.offset) break;
    return SectionPlace{.offset = section.offset,
                        .bytes = section.size,
                        .address = section.address,
                        .is_compressed = is_gnu || (section.flags & kSectionCompressed) != 0};
  }
  return std::nullopt;
}

ElfFile::FrameInformation ElfFile::FindFrameInformation() const {
  FrameInformation found;
  for (const Segment& segment : segments_) {
    if (segment.type == kSegmentEhFrameHdr) found.index = segment.address;
  }
  if (found.index != 0) return found;
  if (const std::optional<SectionPlace> section = FindSection(".eh_frame")) {
    found.eh_frame = section->address;
    found.eh_frame_bytes = section->bytes;
  }
  return found;
}

// Whole pages are mapped, so what lies before a segment in its first page is there, too, unless it
// is another segment's.
std::size_t ElfFile::ReadMapped(const ByteSource& source, std::span<const Segment> segments,
                                std::uint64_t address, std::span<std::uint8_t> bytes) {
  for (const bool has_whole_page : {false, true}) {
    for (const Segment& segment : segments) {
      const std::uint64_t before =
          has_whole_page ? std::min(segment.address - PageOf(segment.address), segment.offset) : 0;
      const std::uint64_t offset = address - (segment.address - before);
      const std::uint64_t size = segment.file_size + before;
      if (segment.type != kSegmentLoad || offset >= size) continue;
      const std::uint64_t at = segment.offset - before + offset;
      if (at >= source.size()) return 0;
      const auto count = static_cast<std::size_t>(
          std::min<std::uint64_t>({bytes.size(), size - offset, source.size() - at}));
      return source.ReadAt(at, std::as_writable_bytes(bytes.first(count))) ? count : 0;
    }
  }
  return 0;
}

std::vector<std::uint8_t> ElfFile::ReadSection(std::string_view name, std::size_t max_bytes) const {
  const std::optional<SectionPlace> place = FindSection(name);
  std::vector<std::uint8_t> bytes;
  if (!place.has_value() || place->is_compressed || place->bytes > max_bytes ||
      !ReadArray(*source_, place->offset, place->bytes, bytes))
    return {};
  return bytes;
}

}  // namespace strobe::internal
