// The debug information of a small program: a function with an inlined one, and its lines.
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "dwarf_bytes.h"
#include "support/bytes.h"

namespace strobe::testing {

// The instructions of line tables.
inline Bytes LineCopy() { return {1}; }
inline Bytes LineAdvancePc(std::uint64_t bytes) { return Join({{2}, Uleb(bytes)}); }
inline Bytes LineAdvance(std::int64_t lines) { return Join({{3}, Sleb(lines)}); }
inline Bytes LineSetFile(std::uint64_t file) { return Join({{4}, Uleb(file)}); }
inline Bytes LineSetColumn(std::uint64_t column) { return Join({{5}, Uleb(column)}); }
inline Bytes LineConstAddPc() { return {8}; }
inline Bytes LineFixedAdvancePc(std::uint16_t bytes) { return Join({{9}, Fixed(bytes)}); }
inline Bytes LineExtended(const Bytes& operation) { return Join({{0}, Block(operation)}); }
inline Bytes LineSetAddress(std::uint64_t address) {
  return LineExtended(Join({{2}, Fixed(address)}));
}
inline Bytes LineSetDiscriminator(std::uint64_t number) {
  return LineExtended(Join({{4}, Uleb(number)}));
}
inline Bytes LineEndSequence() { return LineExtended({1}); }
// A row that is `bytes` and `lines` further on; at most as far as one byte can say.
inline Bytes LineSpecial(unsigned bytes, int lines) {
  return {static_cast<std::uint8_t>(lines + 3 + static_cast<int>(12 * bytes) + 10)};
}

// How rows are counted, and the bytes of operands: as GCC has them.
inline Bytes LineCounts() {
  return {1, 1, 1, static_cast<std::uint8_t>(-3), 12, 10, 0, 1, 1, 1, 1, 0, 0, 0, 1};
}
// A table of version 4. `lists` are its directories and files.
inline Bytes LineTable4(const Bytes& lists, const Bytes& program) {
  const Bytes header = Join({LineCounts(), lists});
  return Lengthened(Join({Fixed(std::uint16_t{4}), Fixed(static_cast<std::uint32_t>(header.size())),
                          header, program}));
}
// The same of version 5.
inline Bytes LineTable5(const Bytes& lists, const Bytes& program) {
  const Bytes header = Join({LineCounts(), lists});
  return Lengthened(Join({Fixed(std::uint16_t{5}),
                          {8, 0},
                          Fixed(static_cast<std::uint32_t>(header.size())),
                          header,
                          program}));
}
// Lists of version 4: the directories behind the unit's own, and files, each in a directory.
inline Bytes LineLists4(const std::vector<std::string_view>& directories,
                        const std::vector<std::pair<std::string_view, std::uint8_t>>& files) {
  Bytes lists;
  for (const std::string_view directory : directories) lists = Join({lists, ZeroEnded(directory)});
  lists.push_back(0);
  for (const auto& [name, directory] : files)
    lists = Join({lists, ZeroEnded(name), {directory, 0, 0}});
  lists.push_back(0);
  return lists;
}

// /build/f.cc: at 0x1000 f, which begins in line 10 and calls g in line 12. g, which begins in line
// 3, is inlined from 0x1010 to 0x1020; the discriminators of its line and of its call are 6 and 9.
// The code from 0x1100 to 0x1200 has lines, but no function.
inline DwarfBytes DebugProgram() {
  using A = strobe::internal::DwarfAttribute;
  using F = strobe::internal::DwarfForm;
  using strobe::internal::DwarfTag;
  DwarfBytes sections;
  sections[".debug_abbrev"] = Join({Shape(1, DwarfTag::kCompileUnit, true,
                                          {{A::kName, F::kString},
                                           {A::kCompilationDirectory, F::kString},
                                           {A::kStatementList, F::kSectionOffset},
                                           {A::kLowPc, F::kAddress},
                                           {A::kHighPc, F::kData8}}),
                                    Shape(2, DwarfTag::kSubprogram, true,
                                          {{A::kName, F::kString},
                                           {A::kDeclarationFile, F::kData1},
                                           {A::kDeclarationLine, F::kData1},
                                           {A::kLowPc, F::kAddress},
                                           {A::kHighPc, F::kData8}}),
                                    Shape(3, DwarfTag::kInlinedSubroutine, false,
                                          {{A::kAbstractOrigin, F::kReference4},
                                           {A::kLowPc, F::kAddress},
                                           {A::kHighPc, F::kData8},
                                           {A::kCallFile, F::kData1},
                                           {A::kCallLine, F::kData1},
                                           {A::kCallColumn, F::kData1},
                                           {A::kGnuDiscriminator, F::kData1}}),
                                    Shape(4, DwarfTag::kSubprogram, false,
                                          {{A::kLinkageName, F::kString},
                                           {A::kDeclarationFile, F::kData1},
                                           {A::kDeclarationLine, F::kData1}}),
                                    {0}});
  const Bytes root = Join({{1},
                           ZeroEnded("f.cc"),
                           ZeroEnded("/build"),
                           Fixed(std::uint32_t{0}),
                           Fixed(std::uint64_t{0x1000}),
                           Fixed(std::uint64_t{0x200})});
  const auto g = static_cast<std::uint32_t>(kUnit4HeaderBytes + root.size());
  sections[".debug_info"] = Unit4(Join({root,
                                        {4},
                                        ZeroEnded("_Z1gv"),
                                        {1, 3},
                                        {2},
                                        ZeroEnded("f"),
                                        {1, 10},
                                        Fixed(std::uint64_t{0x1000}),
                                        Fixed(std::uint64_t{0x100}),
                                        {3},
                                        Fixed(g),
                                        Fixed(std::uint64_t{0x1010}),
                                        Fixed(std::uint64_t{0x10}),
                                        {1, 12, 5, 9},
                                        {0, 0}}));
  sections[".debug_line"] =
      LineTable4(LineLists4({}, {{"f.cc", 0}}),
                 Join({LineSetAddress(0x1000), LineAdvance(10), LineCopy(), LineAdvancePc(0x10),
                       LineAdvance(-7), LineSetColumn(9), LineSetDiscriminator(6), LineCopy(),
                       LineAdvancePc(0x10), LineAdvance(9), LineSetColumn(0), LineCopy(),
                       LineAdvancePc(0x1E0), LineEndSequence()}));
  return sections;
}

}  // namespace strobe::testing
