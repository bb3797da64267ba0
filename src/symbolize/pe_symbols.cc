#include "pe_symbols.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "strobe/symbolize/pe_image.h"

namespace strobe::internal {
namespace {

// Offsets and numbers are those of Microsoft's "PE Format".
constexpr std::size_t kSymbolBytes = 18;
constexpr std::size_t kShortNameBytes = 8;
constexpr std::uint16_t kIsFunction = 0x20;

struct RawSymbol {
  std::array<char, kShortNameBytes> name;  // or four zeros and where it is in the table of strings
  std::uint32_t value;
  std::int16_t section;  // counted from 1
  std::uint16_t type;
  std::uint8_t auxiliaries;  // symbols that follow and are none
};

RawSymbol SymbolAt(const std::vector<std::byte>& bytes, std::size_t number) {
  const std::byte* const at = bytes.data() + number * kSymbolBytes;
  RawSymbol symbol;
  std::memcpy(symbol.name.data(), at, kShortNameBytes);
  std::memcpy(&symbol.value, at + 8, sizeof(symbol.value));
  std::memcpy(&symbol.section, at + 12, sizeof(symbol.section));
  std::memcpy(&symbol.type, at + 14, sizeof(symbol.type));
  std::memcpy(&symbol.auxiliaries, at + 17, sizeof(symbol.auxiliaries));
  return symbol;
}

std::string_view NameOf(const RawSymbol& symbol, std::string_view strings) {
  std::array<std::uint32_t, 2> words{};
  std::memcpy(words.data(), symbol.name.data(), sizeof(words));
  if (words[0] != 0) return {symbol.name.data(), strnlen(symbol.name.data(), kShortNameBytes)};
  if (words[1] >= strings.size()) return {};
  const std::string_view rest = strings.substr(words[1]);
  return rest.substr(0, rest.find('\0'));
}

// The table of strings begins behind the symbols, with its own length.
std::string ReadStrings(const ByteSource& source, std::uint64_t offset) {
  std::array<std::byte, 4> length{};
  std::uint32_t bytes = 0;
  if (!source.ReadAt(offset, length)) return {};
  std::memcpy(&bytes, length.data(), sizeof(bytes));
  if (bytes > kMaxStringTableBytes || bytes > source.size()) return {};
  std::string strings(bytes, '\0');
  return source.ReadAt(offset, std::as_writable_bytes(std::span(strings))) ? strings : std::string();
}

}  // namespace

FunctionTable ReadPeFunctions(const ByteSource& source, const std::string& build_id) {
  const std::optional<PeImage> image = PeImage::Open(
      [&](std::uint64_t position, std::span<std::uint8_t> bytes) {
        return source.ReadAt(position, std::as_writable_bytes(bytes)) ? bytes.size() : 0;
      },
      PeImage::Layout::kFile);
  if (!image || image->build_id != build_id || image->symbols_offset == 0 || image->symbol_count > kMaxSymbols) return {};
  const std::size_t table_bytes = image->symbol_count * kSymbolBytes;
  if (table_bytes > source.size()) return {};
  std::vector<std::byte> table(table_bytes);
  if (!source.ReadAt(image->symbols_offset, table)) return {};
  const std::string strings = ReadStrings(source, std::uint64_t{image->symbols_offset} + table_bytes);

  std::vector<FunctionTable::Function> functions;
  std::vector<char> names;
  for (std::size_t i = 0; i < image->symbol_count; ++i) {
    const RawSymbol symbol = SymbolAt(table, i);
    i += symbol.auxiliaries;
    if (symbol.type != kIsFunction || symbol.section < 1 || static_cast<std::size_t>(symbol.section) > image->sections.size()) continue;
    const PeImage::Section& section = image->sections[static_cast<std::size_t>(symbol.section) - 1];
    const std::string_view name = NameOf(symbol, strings);
    if (!section.is_code || symbol.value >= section.bytes || name.empty()) continue;
    functions.push_back({.address = std::uint64_t{section.start} + symbol.value,
                         .end = std::uint64_t{section.start} + section.bytes,
                         .name = static_cast<std::uint32_t>(names.size())});
    names.insert(names.end(), name.begin(), name.end());
    names.push_back('\0');
  }
  std::sort(functions.begin(), functions.end(), [](const auto& a, const auto& b) { return a.address < b.address; });
  for (std::size_t i = 0; i + 1 < functions.size(); ++i) {
    if (functions[i + 1].address > functions[i].address) functions[i].end = std::min(functions[i].end, functions[i + 1].address);
  }
  // Of several names of one function each must end where the last does.
  for (std::size_t i = functions.size(); i-- > 1;) {
    if (functions[i - 1].address == functions[i].address) functions[i - 1].end = functions[i].end;
  }
  return {std::move(functions), std::move(names)};
}

}  // namespace strobe::internal
