// A peer: the functions and lines of addresses by elfutils' libdw, printed as source_lines does:
//
//   libdw [--map] IMAGE < ADDRESSES
//
// Each unit's entries are read once for all of its addresses. --map maps the file; else libdw reads
// each section as a whole.
#include <dwarf.h>
#include <elfutils/libdw.h>
#include <fcntl.h>
#include <libelf.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <iostream>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

struct Wanted {
  Dwarf_Addr address;
  std::size_t index;
};
using Part = std::pair<std::size_t, std::size_t>;  // of the wanted addresses of a unit
using Chains = std::vector<std::vector<Dwarf_Die>>;

const char* NameOf(Dwarf_Die* entry) {
  for (const unsigned attribute : {DW_AT_linkage_name, DW_AT_MIPS_linkage_name, DW_AT_name}) {
    Dwarf_Attribute value;
    if (dwarf_attr_integrate(entry, attribute, &value) == nullptr) continue;
    if (const char* const name = dwarf_formstring(&value)) return name;
  }
  return "??";
}

// Adds each function below `parent` to the chains of the addresses in it.
void Walk(Dwarf_Die* parent, const std::vector<Wanted>& wanted, Part part, Chains& chains) {
  Dwarf_Die entry;
  if (dwarf_child(parent, &entry) != 0) return;
  const auto before = [](const Wanted& a, Dwarf_Addr address) { return a.address < address; };
  do {
    const int tag = dwarf_tag(&entry);
    if (tag == DW_TAG_namespace || tag == DW_TAG_structure_type || tag == DW_TAG_class_type) {
      Walk(&entry, wanted, part, chains);
    } else if (tag == DW_TAG_subprogram || tag == DW_TAG_inlined_subroutine ||
               tag == DW_TAG_lexical_block) {
      Dwarf_Addr base = 0, begin = 0, end = 0;
      std::ptrdiff_t offset = 0;
      while ((offset = dwarf_ranges(&entry, offset, &base, &begin, &end)) > 0) {
        const auto first = wanted.begin() + static_cast<std::ptrdiff_t>(part.first);
        const auto last = wanted.begin() + static_cast<std::ptrdiff_t>(part.second);
        const auto from = std::lower_bound(first, last, begin, before);
        const auto to = std::lower_bound(from, last, end, before);
        if (from == to) continue;
        for (auto each = from; each != to && tag != DW_TAG_lexical_block; ++each)
          chains[each->index].push_back(entry);
        Walk(&entry, wanted,
             {static_cast<std::size_t>(from - wanted.begin()),
              static_cast<std::size_t>(to - wanted.begin())},
             chains);
      }
    }
  } while (dwarf_siblingof(&entry, &entry) == 0);
}

struct Place {
  const char* file = nullptr;
  int line = 0;
  int column = 0;
};

Place CallOf(Dwarf_Die* entry, Dwarf_Files* files) {
  Place place;
  const auto number = [&](unsigned attribute) {
    Dwarf_Attribute value;
    Dwarf_Word word = 0;
    if (dwarf_attr(entry, attribute, &value) != nullptr) dwarf_formudata(&value, &word);
    return word;
  };
  if (files != nullptr)
    place.file = dwarf_filesrc(files, number(DW_AT_call_file), nullptr, nullptr);
  place.line = static_cast<int>(number(DW_AT_call_line));
  place.column = static_cast<int>(number(DW_AT_call_column));
  return place;
}

std::string TextOf(Dwarf_Die* unit, Dwarf_Addr address, std::vector<Dwarf_Die>& chain) {
  Place place;
  if (Dwarf_Line* const line = dwarf_getsrc_die(unit, address)) {
    place.file = dwarf_linesrc(line, nullptr, nullptr);
    dwarf_lineno(line, &place.line);
    dwarf_linecol(line, &place.column);
  }
  Dwarf_Files* files = nullptr;
  std::size_t file_count = 0;
  dwarf_getsrcfiles(unit, &files, &file_count);
  std::string text;
  const auto add = [&](const char* name) {
    text += std::string(name) + "\n" + (place.file == nullptr ? "??" : place.file) + ":" +
            std::to_string(place.line) + ":" + std::to_string(place.column) + "\n";
  };
  if (chain.empty()) add("??");
  for (auto entry = chain.rbegin(); entry != chain.rend(); ++entry) {
    add(NameOf(&*entry));
    place = CallOf(&*entry, files);
  }
  return text;
}

int Run(const char* path, Elf_Cmd command) {
  std::vector<Wanted> wanted;
  for (Dwarf_Addr address = 0; std::cin >> std::hex >> address;)
    wanted.push_back({address, wanted.size()});
  std::vector<std::string> answers(wanted.size(), "??\n??:0:0\n");
  std::sort(wanted.begin(), wanted.end(),
            [](const Wanted& a, const Wanted& b) { return a.address < b.address; });
  elf_version(EV_CURRENT);
  Elf* const elf = elf_begin(open(path, O_RDONLY), command, nullptr);
  Dwarf* const dwarf = dwarf_begin_elf(elf, DWARF_C_READ, nullptr);
  std::map<Dwarf_Off, std::vector<Wanted>> units;
  for (const Wanted& each : wanted) {
    Dwarf_Die unit;
    if (dwarf_addrdie(dwarf, each.address, &unit) != nullptr)
      units[dwarf_dieoffset(&unit)].push_back(each);
  }
  Chains chains(wanted.size());
  for (auto& [position, addresses] : units) {
    Dwarf_Die unit;
    if (dwarf_offdie(dwarf, position, &unit) == nullptr) continue;
    Walk(&unit, addresses, {0, addresses.size()}, chains);
    for (const Wanted& each : addresses)
      answers[each.index] = TextOf(&unit, each.address, chains[each.index]);
  }
  for (const std::string& answer : answers) std::printf("%s\n", answer.c_str());
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const bool maps = count == 3 && std::string_view(arguments[1]) == "--map";
  return Run(arguments[count - 1], maps ? ELF_C_READ_MMAP : ELF_C_READ);
}
