#include "../../../src/symbolize/dwarf/dwarf_functions.h"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "../dwarf_bytes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using testing::Bytes;
using ::testing::ElementsAre;
using testing::Fixed;
using testing::Join;
using testing::Shape;
using testing::ZeroEnded;

// Entries of the shapes below.
Bytes Function(const char* name, std::uint64_t low, std::uint64_t bytes, const Bytes& children) {
  return Join({{2}, ZeroEnded(name), Fixed(low), Fixed(bytes), children, {0}});
}
Bytes Inlined(std::uint32_t origin, std::uint64_t low, std::uint64_t bytes, std::uint8_t line,
              const Bytes& children = {}) {
  return Join({{3}, Fixed(origin), Fixed(low), Fixed(bytes), {1, line, 9}, children, {0}});
}
Bytes Structure(const Bytes& children) { return Join({{4}, children, {0}}); }
Bytes Lexical(std::uint64_t low, std::uint64_t bytes, const Bytes& children) {
  return Join({{5}, Fixed(low), Fixed(bytes), children, {0}});
}
Bytes Declared(const char* name, std::uint8_t line) { return Join({{6}, ZeroEnded(name), {line}}); }

class FindFunctionsTest : public ::testing::Test {
 protected:
  // Looks for the addresses below the entries of a unit.
  void Find(const Bytes& children, const std::vector<std::uint64_t>& addresses) {
    using A = DwarfAttribute;
    using F = DwarfForm;
    bytes_ = testing::Unit4(Join({{1}, children, {0}}));
    sections_[".debug_info"] = bytes_;
    sections_[".debug_abbrev"] =
        Join({Shape(1, DwarfTag::kCompileUnit, true, {}),
              Shape(2, DwarfTag::kSubprogram, true,
                    {{A::kName, F::kString}, {A::kLowPc, F::kAddress}, {A::kHighPc, F::kData8}}),
              Shape(3, DwarfTag::kInlinedSubroutine, true,
                    {{A::kAbstractOrigin, F::kReference4},
                     {A::kLowPc, F::kAddress},
                     {A::kHighPc, F::kData8},
                     {A::kCallFile, F::kData1},
                     {A::kCallLine, F::kData1},
                     {A::kCallColumn, F::kData1}}),
              Shape(4, DwarfTag::kStructureType, true, {}),
              Shape(5, DwarfTag::kLexicalBlock, true,
                    {{A::kLowPc, F::kAddress}, {A::kHighPc, F::kData8}}),
              Shape(6, DwarfTag::kSubprogram, false,
                    {{A::kName, F::kString}, {A::kDeclarationLine, F::kData1}}),
              {0}});
    file_ = std::make_unique<DwarfFile>(sections_.Finder(), "");
    unit_ = file_->UnitAt(0);
    ASSERT_NE(unit_, nullptr);
    map_ = FindFunctions(*file_, *unit_, bytes_, addresses);
    ASSERT_EQ(map_.innermost.size(), addresses.size());
  }
  // The names from the innermost function out; of an inlined one the line that it is called at.
  [[nodiscard]] std::vector<std::string> At(std::size_t address) const {
    std::vector<std::string> texts;
    for (std::uint32_t i = map_.innermost[address]; i != FunctionEntry::kNone;
         i = map_.entries[i].caller) {
      const FunctionEntry& entry = map_.entries[i];
      texts.push_back(entry.name.is_present ? std::string(file_->TextOf(*unit_, entry.name, bytes_))
                                            : "at " + std::to_string(entry.call_line));
    }
    return texts;
  }

  testing::DwarfBytes sections_;
  Bytes bytes_;
  std::unique_ptr<DwarfFile> file_;
  std::shared_ptr<const DwarfUnit> unit_;
  FunctionMap map_;
};

TEST_F(FindFunctionsTest, FindsTheFunctionOfEachAddress) {
  Find(Join({Function("f", 0x1000, 0x100, {}), Function("g", 0x2000, 0x10, {})}),
       {0xFFF, 0x1000, 0x10FF, 0x1100, 0x2005});
  EXPECT_THAT(At(0), ElementsAre());
  EXPECT_THAT(At(1), ElementsAre("f"));
  EXPECT_THAT(At(2), ElementsAre("f"));
  EXPECT_THAT(At(3), ElementsAre());
  EXPECT_THAT(At(4), ElementsAre("g"));
}

TEST_F(FindFunctionsTest, InlinedFunctionsLeadToTheirCallers) {
  Find(Function("f", 0x1000, 0x100,
                Lexical(0x1000, 0x80, Inlined(0x55, 0x1010, 0x20, 7, Inlined(0x66, 0x1018, 8, 3)))),
       {0x1008, 0x1010, 0x1018, 0x1030});
  EXPECT_THAT(At(0), ElementsAre("f"));
  EXPECT_THAT(At(1), ElementsAre("at 7", "f"));
  EXPECT_THAT(At(2), ElementsAre("at 3", "at 7", "f"));
  EXPECT_THAT(At(3), ElementsAre("f"));
  const FunctionEntry& inlined = map_.entries[map_.innermost[1]];
  EXPECT_EQ(inlined.origin.position, 0x55u);
  EXPECT_EQ(inlined.origin.file, file_.get());
  EXPECT_EQ(inlined.call_file, 1u);
  EXPECT_EQ(inlined.call_column, 9u);
}

TEST_F(FindFunctionsTest, AFunctionMayBeBelowATypeOrAnotherFunction) {
  Find(Join({Structure(Function("member", 0x1000, 0x10, {})),
             Function("outer", 0x2000, 0x10,
                      Join({Declared("declared", 4), Function("nested", 0x3000, 0x10, {})}))}),
       {0x1000, 0x2000, 0x3000});
  EXPECT_THAT(At(0), ElementsAre("member"));
  EXPECT_THAT(At(1), ElementsAre("outer"));
  EXPECT_THAT(At(2), ElementsAre("nested")) << "which no other function has called";
}

TEST_F(FindFunctionsTest, ABrokenUnitYieldsWhatStandsBeforeTheFault) {
  Find(Join({Function("f", 0x1000, 0x100, {}), {99}, Function("g", 0x2000, 0x10, {})}),
       {0x1000, 0x2000});
  EXPECT_THAT(At(0), ElementsAre("f"));
  EXPECT_THAT(At(1), ElementsAre());
}

TEST_F(FindFunctionsTest, NestingHasALimit) {
  Bytes children;
  for (int i = 0; i < 5000; ++i) children.push_back(4);  // structures that have no end
  children = Join({children, Function("deep", 0x1000, 0x10, {})});
  Find(Join({Function("f", 0x2000, 0x10, {}), children}), {0x1000, 0x2000});
  EXPECT_THAT(At(0), ElementsAre());
  EXPECT_THAT(At(1), ElementsAre("f"));
}

TEST_F(FindFunctionsTest, NoAddressesNeedNoFunction) {
  Find(Function("f", 0x1000, 0x100, {}), {});
  EXPECT_TRUE(map_.entries.empty());
}

}  // namespace
}  // namespace strobe::internal
