#include "../../../src/symbolize/dwarf/dwarf_forms.h"

#include <cstdint>
#include <optional>

#include "gtest/gtest.h"
#include "support/bytes.h"

namespace strobe::internal {
namespace {

using testing::Block;
using testing::Bytes;
using testing::Fixed;
using testing::Join;
using testing::Sleb;
using testing::Uleb;
using testing::ZeroEnded;

constexpr UnitShape kShape4{.version = 4};
constexpr UnitShape kShape64{.version = 5, .is_64 = true};

// The value of a form, which must end where its bytes do.
std::uint64_t ValueOf(DwarfForm form, const Bytes& bytes, UnitShape shape = kShape4) {
  DwarfReader reader(bytes, 0);
  const FormValue value = ReadForm(reader, form, -3, shape);
  EXPECT_TRUE(reader.ok()) << static_cast<int>(form);
  EXPECT_EQ(reader.remaining(), 0u) << static_cast<int>(form);
  EXPECT_TRUE(value.is_present);
  // To skip a value is to read it.
  const std::optional<std::uint32_t> fixed = FixedBytes(form, shape);
  if (fixed.has_value()) {
    EXPECT_EQ(*fixed, bytes.size());
  } else {
    DwarfReader skipping(bytes, 0);
    SkipVarying(skipping, form, shape);
    EXPECT_TRUE(skipping.ok());
    EXPECT_EQ(skipping.remaining(), 0u) << static_cast<int>(form);
  }
  return value.number;
}

TEST(UnitShapeTest, SaysHowLargeOffsetsAreAndWhatIsRead) {
  EXPECT_EQ(kShape4.offset_bytes(), 4u);
  EXPECT_EQ(kShape64.offset_bytes(), 8u);
  for (const std::uint16_t version : {2, 3, 4, 5}) EXPECT_TRUE(UnitShape{version}.is_known());
  for (const std::uint16_t version : {0, 1, 6}) EXPECT_FALSE(UnitShape{version}.is_known());
}

TEST(FormValueTest, IsZeroIfItIsNotThere) {
  EXPECT_EQ((FormValue{.is_present = false, .number = 7}.or_zero()), 0u);
  EXPECT_EQ((FormValue{.is_present = true, .number = 7}.or_zero()), 7u);
}

TEST(ReadFormTest, ReadsNumbersOfEachSize) {
  EXPECT_EQ(ValueOf(DwarfForm::kData1, {0xFF}), 0xFFu);
  EXPECT_EQ(ValueOf(DwarfForm::kData2, {1, 2}), 0x201u);
  EXPECT_EQ(ValueOf(DwarfForm::kAddressIndex3, {1, 2, 3}), 0x30201u);
  EXPECT_EQ(ValueOf(DwarfForm::kData4, Fixed(std::uint32_t{0x12345678})), 0x12345678u);
  EXPECT_EQ(ValueOf(DwarfForm::kAddress, Fixed(std::uint64_t{1} << 40)), std::uint64_t{1} << 40);
  EXPECT_EQ(ValueOf(DwarfForm::kUnsignedData, Uleb(300)), 300u);
  EXPECT_EQ(ValueOf(DwarfForm::kSignedData, Sleb(-300)), static_cast<std::uint64_t>(-300));
  EXPECT_EQ(ValueOf(DwarfForm::kFlag, {1}), 1u);
  EXPECT_EQ(ValueOf(DwarfForm::kData16, Bytes(16)), 0u) << "a checksum: of no use here";
}

TEST(ReadFormTest, SomeValuesHaveNoBytes) {
  EXPECT_EQ(ValueOf(DwarfForm::kFlagPresent, {}), 1u);
  EXPECT_EQ(ValueOf(DwarfForm::kImplicitConstant, {}), static_cast<std::uint64_t>(-3));
}

TEST(ReadFormTest, OffsetsHaveTheUnitsSize) {
  EXPECT_EQ(ValueOf(DwarfForm::kSectionOffset, Fixed(std::uint32_t{7})), 7u);
  EXPECT_EQ(ValueOf(DwarfForm::kLineString, Fixed(std::uint64_t{7}), kShape64), 7u);
  EXPECT_EQ(ValueOf(DwarfForm::kReferenceAddress, Fixed(std::uint32_t{7})), 7u);
  EXPECT_EQ(ValueOf(DwarfForm::kReferenceAddress, Fixed(std::uint64_t{7}), {.version = 2}), 7u)
      << "that of an address before version 3";
}

TEST(ReadFormTest, TextsAndBlocksAreGivenByTheirPositions) {
  const Bytes bytes = Join({{9}, ZeroEnded("name"), Block({1, 2, 3}), {4, 5}});
  DwarfReader reader(bytes, 0);
  reader.Skip(1);
  EXPECT_EQ(ReadForm(reader, DwarfForm::kString, 0, kShape4).number, 1u);
  EXPECT_EQ(reader.position(), 6u);
  EXPECT_EQ(ReadForm(reader, DwarfForm::kExpression, 0, kShape4).number, 6u);
  EXPECT_EQ(reader.position(), 10u);
  ValueOf(DwarfForm::kBlock1, {2, 0xFF, 0xFF});
  ValueOf(DwarfForm::kBlock2, {2, 0, 0xFF, 0xFF});
  ValueOf(DwarfForm::kBlock4, {2, 0, 0, 0, 0xFF, 0xFF});
}

TEST(ReadFormTest, AnIndirectValueSaysItsFormItself) {
  const auto data2 = static_cast<std::uint8_t>(DwarfForm::kData2);
  EXPECT_EQ(ValueOf(DwarfForm::kIndirect, {data2, 1, 2}), 0x201u);
  for (const DwarfForm form : {DwarfForm::kIndirect, DwarfForm::kImplicitConstant}) {
    const Bytes bytes = Join({Uleb(static_cast<std::uint64_t>(form)), Bytes(16)});
    DwarfReader reader(bytes, 0);
    ReadForm(reader, DwarfForm::kIndirect, 0, kShape4);
    EXPECT_FALSE(reader.ok()) << "the same again, or a constant that is nowhere";
  }
}

TEST(ReadFormTest, FailsForUnknownFormsAndPastTheEnd) {
  const auto fails = [](DwarfForm form, const Bytes& bytes) {
    DwarfReader reader(bytes, 0);
    ReadForm(reader, form, 0, kShape4);
    return !reader.ok();
  };
  EXPECT_TRUE(fails(static_cast<DwarfForm>(0x77), Bytes(16)));
  EXPECT_TRUE(fails(DwarfForm::kData8, Bytes(7)));
  EXPECT_TRUE(fails(DwarfForm::kString, {'a', 'b'}));
  EXPECT_TRUE(fails(DwarfForm::kBlock1, {3, 1, 2}));
  EXPECT_TRUE(fails(DwarfForm::kBlock, Uleb(~std::uint64_t{0})));
  EXPECT_FALSE(FixedBytes(static_cast<DwarfForm>(0x77), kShape4).has_value());
}

TEST(ReadLengthTest, AMarkStandsBeforeOneOfEightBytes) {
  bool is_64 = true;
  const Bytes small = Fixed(std::uint32_t{100});
  DwarfReader of_small(small, 0);
  EXPECT_EQ(ReadLength(of_small, is_64), 100u);
  EXPECT_FALSE(is_64);
  const Bytes large = Join({Fixed(~std::uint32_t{0}), Fixed(std::uint64_t{1} << 33)});
  DwarfReader of_large(large, 0);
  EXPECT_EQ(ReadLength(of_large, is_64), std::uint64_t{1} << 33);
  EXPECT_TRUE(is_64);
}

TEST(ReadOffsetTest, HasTheUnitsSize) {
  const Bytes bytes = Join({Fixed(std::uint32_t{5}), Fixed(std::uint64_t{6})});
  DwarfReader reader(bytes, 0);
  EXPECT_EQ(ReadOffset(reader, false), 5u);
  EXPECT_EQ(ReadOffset(reader, true), 6u);
  EXPECT_EQ(reader.remaining(), 0u);
}

}  // namespace
}  // namespace strobe::internal
