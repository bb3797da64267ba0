#include "../../../src/symbolize/dwarf/dwarf_index.h"

#include <optional>
#include <vector>

#include "../dwarf_bytes.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using testing::Bytes;
using testing::Fixed;
using testing::Join;
using testing::Shape;

bool Never() { return false; }
bool Always() { return true; }

// Units of one range each.
class DwarfIndexTest : public ::testing::Test {
 protected:
  DwarfIndexTest() {
    sections_[".debug_abbrev"] = Join({Shape(1, DwarfTag::kCompileUnit, false,
                                             {{DwarfAttribute::kLowPc, DwarfForm::kAddress},
                                              {DwarfAttribute::kHighPc, DwarfForm::kData8}}),
                                       {0}});
  }
  // Returns its position.
  std::uint64_t AddUnit(std::uint64_t begin, std::uint64_t bytes) {
    Bytes& info = sections_[".debug_info"];
    const std::uint64_t position = info.size();
    info = Join({info, testing::Unit4(Join({{1}, Fixed(begin), Fixed(bytes)}))});
    return position;
  }
  DwarfIndex Complete() {
    DwarfFile file(sections_.Finder(), "");
    DwarfIndex index;
    index.Advance(file, &Never);
    EXPECT_TRUE(index.is_complete());
    return index;
  }

  testing::DwarfBytes sections_;
};

TEST_F(DwarfIndexTest, FindsTheUnitOfAnAddress) {
  const std::uint64_t first = AddUnit(0x3000, 0x100);
  const std::uint64_t second = AddUnit(0x1000, 0x100);
  const DwarfIndex index = Complete();
  EXPECT_EQ(index.Find(0x3000), first);
  EXPECT_EQ(index.Find(0x30FF), first);
  EXPECT_EQ(index.Find(0x3100), std::nullopt);
  EXPECT_EQ(index.Find(0x1080), second);
  EXPECT_EQ(index.Find(0xFFF), std::nullopt);
  EXPECT_EQ(index.Find(0x2000), std::nullopt);
  EXPECT_GT(index.memory_bytes(), sizeof(index));
}

TEST_F(DwarfIndexTest, OfUnitsWithTheSameCodeTheFirstHasIt) {
  const std::uint64_t first = AddUnit(0x1040, 0x40);
  const std::uint64_t second = AddUnit(0x1000, 0x100);
  const std::uint64_t third = AddUnit(0x1000, 0x200);
  const DwarfIndex index = Complete();
  EXPECT_EQ(index.Find(0x1000), second);
  EXPECT_EQ(index.Find(0x1040), first);
  EXPECT_EQ(index.Find(0x107F), first);
  EXPECT_EQ(index.Find(0x1080), second) << "behind the one that lies in it";
  EXPECT_EQ(index.Find(0x1100), third);
  EXPECT_EQ(index.Find(0x1200), std::nullopt);
}

TEST_F(DwarfIndexTest, IsMadeInSeveralCalls) {
  const std::uint64_t first = AddUnit(0x1000, 0x100);
  const std::uint64_t second = AddUnit(0x2000, 0x100);
  DwarfFile file(sections_.Finder(), "");
  DwarfIndex index;
  int calls = 0;
  while (!index.is_complete() && calls < 10) {
    index.Advance(file, &Always);
    ++calls;
  }
  EXPECT_TRUE(index.is_complete());
  EXPECT_GE(calls, 2) << "one unit at least in each, and no more when it is late";
  EXPECT_EQ(index.Find(0x1000), first);
  EXPECT_EQ(index.Find(0x2000), second);
  index.Advance(file, &Never);
  EXPECT_EQ(index.Find(0x2000), second) << "there is nothing to add";
}

TEST_F(DwarfIndexTest, BrokenUnitsHaveNoCode) {
  const std::uint64_t first = AddUnit(0x1000, 0x100);
  AddUnit(0x2000, ~std::uint64_t{0});
  AddUnit(0x3000, 0);
  Bytes& info = sections_[".debug_info"];
  info = Join({info, Bytes(7, 0xFF)});
  const DwarfIndex index = Complete();
  EXPECT_EQ(index.Find(0x1000), first);
  EXPECT_EQ(index.Find(0x3000), std::nullopt);
}

TEST_F(DwarfIndexTest, AFileWithoutUnitsHasNone) {
  const DwarfIndex index = Complete();
  EXPECT_EQ(index.Find(0x1000), std::nullopt);
}

}  // namespace
}  // namespace strobe::internal
