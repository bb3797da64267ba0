// The symbols of an ElfFile: its functions and its linkage stubs.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <string_view>
#include <utility>
#include <vector>

#include "../images/function_table.h"
#include "arch/linkage_stub.h"
#include "elf_file.h"
#include "elf_format.h"

namespace strobe::internal {
namespace {

struct Relocation {
  std::uint64_t offset;
  std::uint32_t type, symbol;
  std::uint64_t addend;
};
static_assert(sizeof(Relocation) == 24);

constexpr std::uint32_t kSectionStrtab = 3;
constexpr std::uint32_t kSectionRelocations = 4;
constexpr std::uint64_t kSectionLoaded = 2;
constexpr std::uint64_t kSectionExecutable = 4;
constexpr char kVersionMark = '@';
constexpr std::string_view kLinkageTableName = ".plt";  // and .plt.sec, .plt.got
constexpr std::string_view kLinkageSuffix = "@plt";
constexpr unsigned char kSymbolFunction = 2;
constexpr unsigned char kSymbolIndirectFunction = 10;
constexpr std::uint16_t kSectionUndefined = 0;
constexpr std::size_t kSymbolsPerWindow = std::size_t{1} << 15;
constexpr std::size_t kNameWindowBytes = std::size_t{1} << 20;
constexpr std::string_view kNameEnds("\0@", 2);  // the string's, and where a version begins
constexpr std::uint64_t kUnknownEnd = std::numeric_limits<std::uint64_t>::max();
static_assert(kNameWindowBytes >= FunctionTable::kMaxNameBytes);

}  // namespace

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
    const std::vector<LinkageStub> found = architecture_ == Architecture::kX86_64
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
      // Without a symbol, the target is a function of the image itself, or the function that an
      // indirect function returns.
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
