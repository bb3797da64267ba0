#include "../../../src/symbolize/dwarf/dwarf_file.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "../debug_program.h"
#include "../dwarf_bytes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using testing::Bytes;
using ::testing::ElementsAre;
using testing::Fixed;
using ::testing::IsEmpty;
using testing::Join;
using testing::ZeroEnded;

FormValue MadeValue(DwarfForm form, std::uint64_t number) {
  return {.form = form, .is_present = true, .number = number};
}

class DwarfFileTest : public ::testing::Test {
 protected:
  DwarfFile& Open(const char* suffix = "") {
    return *(file_ = std::make_unique<DwarfFile>(sections_.Finder(), suffix));
  }
  testing::DwarfBytes sections_ = testing::DebugProgram();
  std::unique_ptr<DwarfFile> file_;
};

TEST_F(DwarfFileTest, ListsItsUnits) {
  Bytes& info = sections_[".debug_info"];
  const std::uint64_t second = info.size();
  info = Join({info, info});
  DwarfFile& file = Open();
  EXPECT_TRUE(file.has_units());
  EXPECT_THAT(file.UnitPositions(), ElementsAre(0, second));
  const auto unit = file.UnitAt(0);
  ASSERT_NE(unit, nullptr);
  EXPECT_EQ(unit->name, "f.cc");
  EXPECT_EQ(unit->directory, "/build");
  EXPECT_EQ(unit->header.end, second);
  EXPECT_EQ(file.UnitOf(second - 1), unit);
  EXPECT_EQ(file.UnitOf(second + 20), file.UnitAt(second));
  EXPECT_EQ(file.UnitOf(10 * second), nullptr);
}

TEST_F(DwarfFileTest, AFileMayHaveNoUnits) {
  sections_.clear();
  EXPECT_FALSE(Open().has_units());
  EXPECT_THAT(file_->UnitPositions(), IsEmpty());
  EXPECT_EQ(file_->UnitAt(0), nullptr);
}

TEST_F(DwarfFileTest, SplitUnitsHaveSectionsOfOtherNames) {
  EXPECT_FALSE(Open(".dwo").has_units());
  sections_[".debug_info.dwo"] = sections_[".debug_info"];
  sections_[".debug_abbrev.dwo"] = sections_[".debug_abbrev"];
  EXPECT_TRUE(Open(".dwo").has_units());
}

TEST_F(DwarfFileTest, BrokenHeadersAreNone) {
  const Bytes good = sections_[".debug_info"];
  for (std::size_t size = 0; size < testing::kUnit4HeaderBytes; ++size) {
    sections_[".debug_info"].assign(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(Open().UnitAt(0), nullptr) << size;
  }
  sections_[".debug_info"] = good;
  sections_[".debug_info"][4] = 6;  // an unknown version
  EXPECT_EQ(Open().UnitAt(0), nullptr);
  sections_[".debug_info"] = good;
  sections_[".debug_abbrev"].clear();
  EXPECT_EQ(Open().UnitAt(0), nullptr) << "without shapes nothing can be understood";
}

TEST_F(DwarfFileTest, TextsOfEverySection) {
  sections_[".debug_str"] = Join({ZeroEnded("zero"), ZeroEnded("five")});
  sections_[".debug_line_str"] = ZeroEnded("line");
  sections_[".debug_str_offsets"] = Join({Bytes(8), Fixed(0u), Fixed(5u)});
  DwarfFile& file = Open();
  DwarfUnit unit = *file.UnitAt(0);
  unit.string_offsets_base = 8;
  EXPECT_EQ(file.TextOf(unit, MadeValue(DwarfForm::kStringOffset, 5), {}), "five");
  EXPECT_EQ(file.TextOf(unit, MadeValue(DwarfForm::kLineString, 0), {}), "line");
  EXPECT_EQ(file.TextOf(unit, MadeValue(DwarfForm::kStringIndex, 1), {}), "five");
  EXPECT_EQ(file.TextOf(unit, MadeValue(DwarfForm::kStringIndex, 99), {}), "");
  EXPECT_EQ(file.TextOf(unit, MadeValue(DwarfForm::kStringOffset, ~std::uint64_t{0}), {}), "");
  EXPECT_EQ(file.TextOf(unit, {}, {}), "");
  const Bytes own = ZeroEnded("own");
  EXPECT_EQ(file.TextOf(unit, MadeValue(DwarfForm::kString, 0), own), "own");
  EXPECT_EQ(file.TextOf(unit, MadeValue(DwarfForm::kString, 99), own), "");
}

TEST_F(DwarfFileTest, AddressesMayBeIndices) {
  sections_[".debug_addr"] =
      Join({Bytes(8), Fixed(std::uint64_t{0x1000}), Fixed(std::uint64_t{0x2000})});
  DwarfFile& file = Open();
  DwarfUnit unit = *file.UnitAt(0);
  unit.address_base = 8;
  EXPECT_EQ(file.AddressOf(unit, MadeValue(DwarfForm::kAddress, 0x1234)), 0x1234u);
  EXPECT_EQ(file.AddressOf(unit, MadeValue(DwarfForm::kAddressIndex, 1)), 0x2000u);
  EXPECT_EQ(file.AddressOf(unit, MadeValue(DwarfForm::kAddressIndex, 2)), std::nullopt);
  EXPECT_EQ(file.AddressOf(unit, MadeValue(DwarfForm::kAddressIndex, ~std::uint64_t{0})),
            std::nullopt);
  EXPECT_EQ(file.AddressOf(unit, MadeValue(DwarfForm::kData4, 5)), std::nullopt) << "no address";
}

TEST_F(DwarfFileTest, ReferencesCountFromTheUnitOrTheFile) {
  Bytes& info = sections_[".debug_info"];
  const std::uint64_t second = info.size();
  info = Join({info, info});
  DwarfFile& file = Open();
  const auto unit = file.UnitAt(second);
  ASSERT_NE(unit, nullptr);
  const EntryPlace in_unit = file.ReferenceOf(*unit, MadeValue(DwarfForm::kReference4, 20));
  EXPECT_EQ(in_unit.file, &file);
  EXPECT_EQ(in_unit.position, second + 20);
  EXPECT_EQ(file.ReferenceOf(*unit, MadeValue(DwarfForm::kReferenceAddress, 20)).position, 20u);
  EXPECT_EQ(file.ReferenceOf(*unit, MadeValue(DwarfForm::kGnuReferenceAlternative, 20)).file,
            nullptr)
      << "there is no supplement";
  EXPECT_EQ(file.ReferenceOf(*unit, {}).file, nullptr);
}

TEST_F(DwarfFileTest, RangesAreOfEitherKind) {
  sections_[".debug_ranges"] =
      Join({Fixed(std::uint64_t{0x10}), Fixed(std::uint64_t{0x20}), Fixed(std::uint64_t{0x40}),
            Fixed(std::uint64_t{0x48}), Bytes(16)});
  DwarfFile& file = Open();
  DwarfUnit unit = *file.UnitAt(0);
  std::vector<std::pair<std::uint64_t, std::uint64_t>> ranges;
  const auto visit = [&](std::uint64_t begin, std::uint64_t end) {
    ranges.emplace_back(begin, end);
  };
  ASSERT_TRUE(VisitRanges(file, unit, unit.low_pc, unit.high_pc, unit.ranges, visit));
  EXPECT_THAT(ranges, ElementsAre(std::pair(0x1000u, 0x1200u)));
  ranges.clear();
  ASSERT_TRUE(
      VisitRanges(file, unit, unit.low_pc, {}, MadeValue(DwarfForm::kSectionOffset, 0), visit));
  EXPECT_THAT(ranges, ElementsAre(std::pair(0x1010u, 0x1020u), std::pair(0x1040u, 0x1048u)));
  EXPECT_FALSE(VisitRanges(file, unit, unit.low_pc, {},
                           MadeValue(DwarfForm::kSectionOffset, 1'000'000), visit));
}

}  // namespace
}  // namespace strobe::internal
