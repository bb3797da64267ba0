#include "pe_symbols.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "pdb_file.h"
#include "strobe/symbolize/pe_image.h"

namespace strobe::internal {
namespace {

// Offsets and numbers are those of Microsoft's "PE Format".
constexpr std::size_t kSymbolBytes = 18;
constexpr std::size_t kShortNameBytes = 8;
constexpr std::uint16_t kIsFunction = 0x20;
constexpr std::size_t kExportHeaderBytes = 40;
constexpr std::size_t kMaxExports = std::size_t{1} << 16;  // as many as can be told apart
constexpr std::size_t kMaxPdataBytes = std::size_t{64} << 20;

template <class T>
T Load(const void* from) {
  T value;
  std::memcpy(&value, from, sizeof(value));
  return value;
}

// The part of the image's `bytes` bytes from `position` that the file has. Empty if the file has
// none of them, or if there are more than `max_bytes`.
std::vector<char> ReadPart(const ByteSource& source, const PeImage& image, std::uint32_t position,
                           std::uint32_t bytes, std::size_t max_bytes) {
  const std::optional<std::uint64_t> offset = image.FileOffset(position);
  if (!offset || bytes > max_bytes || bytes > source.size()) return {};
  std::vector<char> part(bytes);
  if (!source.ReadAt(*offset, std::as_writable_bytes(std::span(part)))) part.clear();
  return part;
}

struct RawSymbol {
  std::array<char, kShortNameBytes> name;  // or four zeros and where it is in the table of strings
  std::uint32_t value;
  std::int16_t section;  // counted from 1
  std::uint16_t type;
  std::uint8_t auxiliaries;  // records that follow and are not symbols
};

RawSymbol SymbolAt(const std::vector<std::byte>& bytes, std::size_t number) {
  const std::byte* const at = bytes.data() + number * kSymbolBytes;
  return {.name = Load<std::array<char, kShortNameBytes>>(at),
          .value = Load<std::uint32_t>(at + 8),
          .section = Load<std::int16_t>(at + 12),
          .type = Load<std::uint16_t>(at + 14),
          .auxiliaries = Load<std::uint8_t>(at + 17)};
}

// The table of strings follows the symbols, and begins with its own length.
std::vector<char> ReadStrings(const ByteSource& source, std::uint64_t offset) {
  std::array<std::byte, 4> length{};
  if (!source.ReadAt(offset, length)) return {};
  const auto bytes = Load<std::uint32_t>(length.data());
  if (bytes > kMaxStringTableBytes || bytes > source.size()) return {};
  std::vector<char> strings(bytes);
  if (!source.ReadAt(offset, std::as_writable_bytes(std::span(strings)))) strings.clear();
  return strings;
}

// The place of a symbol's name in `names`, which begins with the table of strings. A short name is
// added to `names`. A long name stays in the table, because many symbols may share it.
std::uint32_t PlaceName(const RawSymbol& symbol, std::size_t strings_bytes,
                        std::vector<char>& names) {
  const auto words = Load<std::array<std::uint32_t, 2>>(symbol.name.data());
  const auto end = static_cast<std::uint32_t>(names.size());
  if (words[0] == 0) return words[1] < strings_bytes ? words[1] : end - 1;
  names.insert(names.end(), symbol.name.begin(), symbol.name.end());
  names.push_back('\0');
  return end;
}

// Ends each function at the start of the next one, if it does not end before.
void EndWhereTheNextBegins(std::vector<FunctionTable::Function>& functions) {
  std::sort(functions.begin(), functions.end(),
            [](const auto& a, const auto& b) { return a.address < b.address; });
  for (std::size_t i = 0; i + 1 < functions.size(); ++i) {
    if (functions[i + 1].address > functions[i].address)
      functions[i].end = std::min(functions[i].end, functions[i + 1].address);
  }
  // All names of one function end where the last one ends.
  for (std::size_t i = functions.size(); i-- > 1;) {
    if (functions[i - 1].address == functions[i].address) functions[i - 1].end = functions[i].end;
  }
}

// The code section that holds the address, or none.
const PeImage::Section* CodeAt(const PeImage& image, std::uint64_t address) {
  const auto section = std::find_if(image.sections.begin(), image.sections.end(),
                                    [&](const PeImage::Section& candidate) {
                                      return candidate.is_code && address >= candidate.start &&
                                             address - candidate.start < candidate.bytes;
                                    });
  return section == image.sections.end() ? nullptr : &*section;
}

// True if there are files that the system may take for the debug information of the image at
// `path`, and all are complete. False if the path that the linker left names another machine.
bool HasWholeDebugFile(const PeImage& image, const std::string& path, const SymbolFiles& files) {
  constexpr std::string_view kSeparators = "/\\";
  if (image.debug_file.find_first_not_of("/\\?") > 1) return false;
  const std::string beside =
      path.substr(0, path.find_last_of(kSeparators) + 1) +
      image.debug_file.substr(image.debug_file.find_last_of(kSeparators) + 1);
  bool is_there = false;
  for (const std::string& place : {beside, image.debug_file}) {
    const std::unique_ptr<FileSource> file = files.Open(place);
    if (file != nullptr && !IsWholePdb(*file)) return false;
    is_there |= file != nullptr;
  }
  return is_there;
}

// The ranges of the image's frame information, in order.
class FrameRanges {
 public:
  FrameRanges(const ByteSource& source, const PeImage& image) {
    const std::vector<char> pdata =
        ReadPart(source, image, image.pdata, image.pdata_bytes, kMaxPdataBytes);
    constexpr std::size_t kEntryBytes = 12;
    for (std::size_t at = 0; at + kEntryBytes <= pdata.size(); at += kEntryBytes) {
      ranges_.push_back(
          {Load<std::uint32_t>(pdata.data() + at), Load<std::uint32_t>(pdata.data() + at + 4)});
    }
    std::sort(ranges_.begin(), ranges_.end(),
              [](const Range& a, const Range& b) { return a.begin < b.begin; });
  }
  // The end of the function at `address`: the end of its range. A function without a frame has no
  // range, and ends where the next range begins.
  [[nodiscard]] std::uint32_t EndOf(std::uint32_t address, std::uint32_t limit) const {
    const auto after = std::upper_bound(
        ranges_.begin(), ranges_.end(), address,
        [](std::uint32_t value, const Range& range) { return value < range.begin; });
    if (after != ranges_.begin() && address < (after - 1)->end)
      return std::min((after - 1)->end, limit);
    return after != ranges_.end() ? std::min(after->begin, limit) : limit;
  }

 private:
  struct Range {
    std::uint32_t begin, end;
  };
  std::vector<Range> ranges_;
};

// True if that is the section's name. `strings` is where the table of strings is in the file.
bool IsNamed(const PeImage::Section& section, std::string_view name, const ByteSource& source,
             std::uint64_t strings) {
  constexpr int kDecimal = 10;
  const std::string_view own(section.name.data(),
                             strnlen(section.name.data(), section.name.size()));
  if (!own.starts_with('/')) return own == name;
  std::uint64_t place = 0;
  const auto end = std::from_chars(own.data() + 1, own.data() + own.size(), place, kDecimal);
  std::string text(name.size() + 1, '\0');  // with its terminating zero
  return end.ec == std::errc() && end.ptr == own.data() + own.size() &&
         source.ReadAt(strings + place, std::as_writable_bytes(std::span(text))) &&
         text.starts_with(name) && text.back() == '\0';
}

}  // namespace

std::optional<PeFile> PeFile::Open(const ByteSource& source, const std::string& build_id) {
  std::optional<PeImage> image = PeImage::Open(ReaderOf(source), PeImage::Layout::kFile);
  if (!image || image->build_id != build_id) return std::nullopt;
  return PeFile(source, *std::move(image));
}

FunctionTable PeFile::ReadFunctions() const {
  if (image_.symbols_offset == 0 || image_.symbol_count > kMaxSymbols) return {};
  const std::size_t table_bytes = image_.symbol_count * kSymbolBytes;
  if (table_bytes > source_->size()) return {};
  std::vector<std::byte> table(table_bytes);
  if (!source_->ReadAt(image_.symbols_offset, table)) return {};
  std::vector<char> names =
      ReadStrings(*source_, std::uint64_t{image_.symbols_offset} + table_bytes);
  const std::size_t strings_bytes = names.size();
  names.push_back('\0');

  std::vector<FunctionTable::Function> functions;
  for (std::size_t i = 0; i < image_.symbol_count; ++i) {
    const RawSymbol symbol = SymbolAt(table, i);
    i += symbol.auxiliaries;
    if (symbol.type != kIsFunction || symbol.section < 1 ||
        static_cast<std::size_t>(symbol.section) > image_.sections.size())
      continue;
    const PeImage::Section& section = image_.sections[static_cast<std::size_t>(symbol.section) - 1];
    if (!section.is_code || symbol.value >= section.bytes) continue;
    const std::uint32_t name = PlaceName(symbol, strings_bytes, names);
    if (names[name] == '\0') continue;
    functions.push_back({.address = std::uint64_t{section.start} + symbol.value,
                         .end = std::uint64_t{section.start} + section.bytes,
                         .name = name});
  }
  EndWhereTheNextBegins(functions);
  return {std::move(functions), std::move(names)};
}

std::optional<FunctionTable> PeFile::ReadDebugFunctions(const std::string& path,
                                                        const SymbolFiles& files) const {
  if (!HasWholeDebugFile(image_, path, files)) return FunctionTable();
  std::vector<FunctionTable::Function> functions;
  std::vector<char> names;
  const bool is_asked = files.VisitSymbols(
      path, [&](std::uint64_t address, std::uint64_t bytes, std::string_view name) {
        const PeImage::Section* const section = CodeAt(image_, address);
        if (section == nullptr || name.empty()) return true;
        if (functions.size() >= kMaxSymbols || name.size() >= kMaxStringTableBytes - names.size())
          return false;
        const std::uint64_t limit = std::uint64_t{section->start} + section->bytes;
        functions.push_back({.address = address,
                             .end = bytes == 0 || bytes > limit - address ? limit : address + bytes,
                             .name = static_cast<std::uint32_t>(names.size())});
        names.insert(names.end(), name.begin(), name.end());
        names.push_back('\0');
        return true;
      });
  if (!is_asked) return std::nullopt;
  EndWhereTheNextBegins(functions);
  return FunctionTable(std::move(functions), std::move(names));
}

void PeFile::VisitDebugLines(const std::string& path, const SymbolFiles& files,
                             std::span<const std::uint64_t> addresses,
                             const SymbolFiles::LineVisitor& visit) const {
  if (HasWholeDebugFile(image_, path, files))
    static_cast<void>(files.VisitLines(path, addresses, visit));
}

FunctionTable PeFile::ReadExports() const {
  // The directory contains all of its tables, and the names.
  std::vector<char> directory =
      ReadPart(*source_, image_, image_.exports, image_.exports_bytes, kMaxStringTableBytes);
  if (directory.size() < kExportHeaderBytes) return {};
  const auto number = [&](std::uint64_t at) {
    return at + 4 <= directory.size() ? Load<std::uint32_t>(directory.data() + at) : 0;
  };
  const auto place = [&](std::uint32_t position) {
    return std::uint64_t{position} - image_.exports;
  };  // far outside if it lies before
  const std::uint64_t address_count = number(20);
  const std::uint64_t name_count = std::min<std::uint64_t>(number(24), kMaxExports);
  const std::uint64_t addresses = place(number(28));
  const std::uint64_t names = place(number(32));
  const std::uint64_t ordinals = place(number(36));

  const FrameRanges ranges(*source_, image_);
  std::vector<FunctionTable::Function> functions;
  for (std::uint64_t i = 0; i < name_count; ++i) {
    const std::uint64_t ordinal_at = ordinals + i * 2;
    if (ordinals > directory.size() || ordinal_at + 2 > directory.size() ||
        names > directory.size())
      break;
    const auto ordinal = Load<std::uint16_t>(directory.data() + ordinal_at);
    const std::uint64_t name = place(number(names + i * 4));
    if (ordinal >= address_count || addresses > directory.size() || name >= directory.size() ||
        directory[name] == '\0')
      continue;
    const std::uint32_t address = number(addresses + std::uint64_t{ordinal} * 4);
    // An address in the directory itself is the name of another image's function.
    const PeImage::Section* const section = CodeAt(image_, address);
    if (section == nullptr || place(address) < directory.size()) continue;
    const auto limit = static_cast<std::uint32_t>(
        std::min<std::uint64_t>(std::uint64_t{section->start} + section->bytes, ~std::uint32_t{0}));
    functions.push_back({.address = address,
                         .end = ranges.EndOf(address, limit),
                         .name = static_cast<std::uint32_t>(name)});
  }
  EndWhereTheNextBegins(functions);
  return {std::move(functions), std::move(directory)};
}

std::optional<PeFile::SectionPlace> PeFile::FindSection(std::string_view name) const {
  const std::uint64_t strings =
      std::uint64_t{image_.symbols_offset} + std::uint64_t{image_.symbol_count} * kSymbolBytes;
  for (const PeImage::Section& section : image_.sections) {
    if (!IsNamed(section, name, *source_, strings)) continue;
    // The file pads a section; an object file's section has no size in memory.
    const std::uint64_t bytes =
        section.bytes == 0 ? section.file_bytes : std::min(section.bytes, section.file_bytes);
    if (section.file_offset > source_->size() || bytes > source_->size() - section.file_offset)
      return std::nullopt;
    return SectionPlace{section.file_offset, bytes};
  }
  return std::nullopt;
}

std::optional<std::uint64_t> PeFile::AddressAt(std::uint64_t file_offset) const {
  for (const PeImage::Section& section : image_.sections) {
    if (file_offset >= section.file_offset &&
        file_offset - section.file_offset < section.file_bytes)
      return section.start + (file_offset - section.file_offset);
  }
  return std::nullopt;
}

}  // namespace strobe::internal
