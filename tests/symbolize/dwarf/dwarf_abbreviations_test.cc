#include "../../../src/symbolize/dwarf/dwarf_abbreviations.h"

#include <cstdint>
#include <memory>
#include <optional>

#include "../dwarf_bytes.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using testing::Bytes;
using testing::Fixed;
using testing::Join;
using testing::Shape;
using testing::Sleb;
using testing::Uleb;
using testing::ZeroEnded;

constexpr UnitShape kUnitShape{.version = 5};

std::optional<AbbreviationTable> ReadTable(const Bytes& bytes, std::uint64_t position = 0) {
  SectionBytes section(std::make_shared<testing::MemoryFile>(bytes), 0, bytes.size());
  return AbbreviationTable::Read(section, position, kUnitShape);
}

Bytes TwoShapes() {
  return Join(
      {Shape(1, DwarfTag::kCompileUnit, true, {{DwarfAttribute::kName, DwarfForm::kString}}),
       Shape(2, DwarfTag::kSubprogram, false,
             {{DwarfAttribute::kLowPc, DwarfForm::kAddress},
              {DwarfAttribute::kHighPc, DwarfForm::kData4}}),
       {0}});
}

TEST(AbbreviationTableTest, HasTheShapesByTheirCodes) {
  const std::optional<AbbreviationTable> table = ReadTable(TwoShapes());
  ASSERT_TRUE(table.has_value());
  const Abbreviation* const unit = table->Find(1);
  ASSERT_NE(unit, nullptr);
  EXPECT_EQ(unit->tag, DwarfTag::kCompileUnit);
  EXPECT_TRUE(unit->has_children);
  ASSERT_EQ(table->AttributesOf(*unit).size(), 1u);
  EXPECT_EQ(table->AttributesOf(*unit)[0].name, DwarfAttribute::kName);
  const Abbreviation* const function = table->Find(2);
  ASSERT_NE(function, nullptr);
  EXPECT_FALSE(function->has_children);
  ASSERT_EQ(table->AttributesOf(*function).size(), 2u);
  EXPECT_EQ(table->AttributesOf(*function)[1].form, DwarfForm::kData4);
  EXPECT_EQ(table->Find(0), nullptr);
  EXPECT_EQ(table->Find(3), nullptr);
}

TEST(AbbreviationTableTest, CodesMayBeInAnyOrder) {
  const std::optional<AbbreviationTable> table =
      ReadTable(Join({Shape(900, DwarfTag::kNamespace, true, {}),
                      Shape(5, DwarfTag::kSubprogram, true, {}),
                      Shape(1, DwarfTag::kCompileUnit, true, {}),
                      {0}}));
  ASSERT_TRUE(table.has_value());
  EXPECT_EQ(table->Find(900)->tag, DwarfTag::kNamespace);
  EXPECT_EQ(table->Find(5)->tag, DwarfTag::kSubprogram);
  EXPECT_EQ(table->Find(1)->tag, DwarfTag::kCompileUnit);
  EXPECT_EQ(table->Find(2), nullptr);
}

TEST(AbbreviationTableTest, BeginsAtItsPosition) {
  const Bytes bytes = Join({Bytes(5, 0xFF), TwoShapes()});
  EXPECT_NE(ReadTable(bytes, 5)->Find(2), nullptr);
  EXPECT_FALSE(ReadTable(bytes, bytes.size()).has_value());
}

TEST(AbbreviationTableTest, IsEmptyIfItIsCutOff) {
  const Bytes bytes = TwoShapes();
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const Bytes part(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_FALSE(ReadTable(part).has_value()) << size;
  }
}

TEST(AbbreviationTableTest, MayBeLargerThanAWindowOfItsSection) {
  Bytes bytes;
  constexpr std::uint64_t kShapes = 60'000;
  for (std::uint64_t code = 1; code <= kShapes; ++code) {
    const Bytes shape =
        Shape(code, DwarfTag::kSubprogram, false, {{DwarfAttribute::kName, DwarfForm::kString}});
    bytes.insert(bytes.end(), shape.begin(), shape.end());
  }
  bytes.push_back(0);
  const std::optional<AbbreviationTable> table = ReadTable(bytes);
  ASSERT_TRUE(table.has_value());
  EXPECT_NE(table->Find(kShapes), nullptr);
}

TEST(AbbreviationTableTest, HoldsTheValuesOfImplicitConstants) {
  Bytes shape = Shape(1, DwarfTag::kSubprogram, false,
                      {{DwarfAttribute::kDeclarationLine, DwarfForm::kImplicitConstant}});
  shape.resize(shape.size() - 2);
  const std::optional<AbbreviationTable> table = ReadTable(Join({shape, Sleb(-7), {0, 0}, {0}}));
  ASSERT_TRUE(table.has_value());
  EXPECT_EQ(table->AttributesOf(*table->Find(1))[0].constant, -7);
}

TEST(AbbreviationTableTest, SkipsAnEntryAndSaysWhereTheNextIs) {
  const std::optional<AbbreviationTable> table =
      ReadTable(Join({Shape(1, DwarfTag::kSubprogram, true,
                            {{DwarfAttribute::kLowPc, DwarfForm::kAddress},
                             {DwarfAttribute::kName, DwarfForm::kString},
                             {DwarfAttribute::kSibling, DwarfForm::kReference4},
                             {DwarfAttribute::kDeclarationLine, DwarfForm::kUnsignedData},
                             {DwarfAttribute::kDeclarationFile, DwarfForm::kData1}}),
                      Shape(2, DwarfTag::kNamespace, true, {}),
                      {0}}));
  ASSERT_TRUE(table.has_value());
  const Bytes entry =
      Join({Bytes(8), ZeroEnded("name"), Fixed(std::uint32_t{0x77}), Uleb(300), {1}, {0xEE}});
  DwarfReader reader(entry, 0);
  EXPECT_EQ(table->Skip(reader, *table->Find(1)), 0x77u);
  EXPECT_EQ(reader.remaining(), 1u);
  EXPECT_EQ(table->Skip(reader, *table->Find(2)), 0u) << "without a sibling";
  EXPECT_EQ(reader.remaining(), 1u);
  EXPECT_TRUE(reader.ok());
  const Bytes part(entry.begin(), entry.begin() + 10);
  DwarfReader cut(part, 0);
  table->Skip(cut, *table->Find(1));
  EXPECT_FALSE(cut.ok());
}

}  // namespace
}  // namespace strobe::internal
