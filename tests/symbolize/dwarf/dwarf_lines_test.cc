#include "../../../src/symbolize/dwarf/dwarf_lines.h"

#include <memory>
#include <utility>

#include "../debug_program.h"
#include "../dwarf_bytes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using testing::Bytes;
using ::testing::ElementsAre;
using testing::Fixed;
using testing::Join;
using testing::LineAdvance;
using testing::LineAdvancePc;
using testing::LineConstAddPc;
using testing::LineCopy;
using testing::LineEndSequence;
using testing::LineExtended;
using testing::LineFixedAdvancePc;
using testing::LineLists4;
using testing::LineSetAddress;
using testing::LineSetColumn;
using testing::LineSetFile;
using testing::LineSpecial;
using testing::LineTable4;
using testing::LineTable5;
using testing::Uleb;
using testing::ZeroEnded;

constexpr std::size_t kManyBytes = 1 << 20;

// A unit in the directory /build with this table.
class LineTableTest : public ::testing::Test {
 protected:
  bool Read(const Bytes& table, std::size_t max_bytes = kManyBytes) {
    testing::DwarfBytes sections;
    sections[".debug_line"] = table;
    sections[".debug_line_str"] = Join({ZeroEnded("/src"), ZeroEnded("a.cc")});
    file_ = std::make_unique<DwarfFile>(sections.Finder(), "");
    auto unit = std::make_shared<DwarfUnit>();
    unit->line_table = {.form = DwarfForm::kSectionOffset, .is_present = true, .number = 0};
    unit->directory = "/build";
    table_ = LineTable::Read(*file_, std::move(unit), max_bytes);
    return table_.has_value();
  }
  // The line of each address; 0 for none.
  std::vector<std::uint32_t> Lines(const std::vector<std::uint64_t>& addresses) {
    std::vector<std::uint32_t> lines;
    for (const LineRow& row : table_->Find(addresses)) lines.push_back(row.is_known ? row.line : 0);
    return lines;
  }

  std::unique_ptr<DwarfFile> file_;
  std::optional<LineTable> table_;
};

TEST_F(LineTableTest, ARowHoldsUntilTheNext) {
  ASSERT_TRUE(
      Read(LineTable4(LineLists4({}, {{"a.cc", 0}}),
                      Join({LineSetAddress(0x1000), LineCopy(), LineSpecial(4, 3),
                            LineAdvancePc(0x100), LineAdvance(-2), LineSetColumn(7), LineSetFile(2),
                            LineCopy(), LineFixedAdvancePc(0x10), LineEndSequence()}))));
  EXPECT_THAT(Lines({0xFFF, 0x1000, 0x1003, 0x1004, 0x1103, 0x1104, 0x1113, 0x1114}),
              ElementsAre(0, 1, 1, 4, 4, 2, 2, 0));
  const std::uint64_t address = 0x1110;
  const LineRow row = table_->Find(std::span(&address, 1))[0];
  EXPECT_EQ(row.column, 7u);
  EXPECT_EQ(row.file, 2u);
}

TEST_F(LineTableTest, ADiscriminatorIsOfOneRow) {
  ASSERT_TRUE(
      Read(LineTable4(LineLists4({}, {{"a.cc", 0}}),
                      Join({LineSetAddress(0x1000), testing::LineSetDiscriminator(300), LineCopy(),
                            LineSpecial(4, 0), testing::LineSetDiscriminator(2), LineSpecial(4, 0),
                            LineSpecial(4, 1), LineAdvancePc(4), LineEndSequence()}))));
  std::vector<std::uint32_t> discriminators;
  for (const LineRow& row :
       table_->Find(std::vector<std::uint64_t>{0x1000, 0x1004, 0x1008, 0x100C}))
    discriminators.push_back(row.discriminator);
  EXPECT_THAT(discriminators, ElementsAre(300, 0, 2, 0));
}

TEST_F(LineTableTest, SequencesBeginAnew) {
  ASSERT_TRUE(Read(LineTable4(LineLists4({}, {{"a.cc", 0}}),
                              Join({LineSetAddress(0x2000), LineAdvance(50), LineCopy(),
                                    LineAdvancePc(8), LineEndSequence(), LineSetAddress(0x1000),
                                    LineCopy(), LineConstAddPc(), LineEndSequence()}))));
  EXPECT_THAT(Lines({0x1000, 0x1013, 0x1014, 0x2000, 0x2008}), ElementsAre(1, 1, 0, 51, 0));
}

TEST_F(LineTableTest, CodeThatTheLinkerLeftOutHasNoLines) {
  ASSERT_TRUE(Read(
      LineTable4(LineLists4({}, {{"a.cc", 0}}),
                 Join({LineSetAddress(0), LineCopy(), LineAdvancePc(0x2000), LineEndSequence()}))));
  EXPECT_THAT(Lines({0, 0x1000}), ElementsAre(0, 0));
}

TEST_F(LineTableTest, UnknownInstructionsAreSkipped) {
  const Bytes unknown = LineExtended({0x80, 1, 2, 3});
  // 6, 7 and 10 to 12 change nothing here; the header says that 12 has an operand.
  Bytes counts = testing::LineCounts();
  counts[5] = 13;
  counts = Join({counts, {0, 0, 1}});
  const Bytes header = Join({counts, LineLists4({}, {{"a.cc", 0}})});
  const Bytes program = Join({LineSetAddress(0x1000),
                              unknown,
                              {6},
                              {7},
                              {10},
                              {12},
                              Uleb(300),
                              LineCopy(),
                              LineAdvancePc(4),
                              LineEndSequence()});
  ASSERT_TRUE(Read(testing::Lengthened(
      Join({Fixed(std::uint16_t{4}), Fixed(static_cast<std::uint32_t>(header.size())), header,
            program}))));
  EXPECT_THAT(Lines({0x1000, 0x1004}), ElementsAre(1, 0));
}

TEST_F(LineTableTest, PathsOfVersion4) {
  ASSERT_TRUE(Read(LineTable4(
      LineLists4({"sub", "/usr/include"},
                 {{"a.cc", 0}, {"b.h", 1}, {"c.h", 2}, {"/d.h", 1}, {"C:\\e.h", 1}, {"f.h", 99}}),
      {})));
  EXPECT_EQ(table_->PathOf(0), "") << "files are counted from 1";
  EXPECT_EQ(table_->PathOf(1), "/build/a.cc");
  EXPECT_EQ(table_->PathOf(2), "/build/sub/b.h");
  EXPECT_EQ(table_->PathOf(3), "/usr/include/c.h");
  EXPECT_EQ(table_->PathOf(4), "/d.h");
  EXPECT_EQ(table_->PathOf(5), "C:\\e.h");
  EXPECT_EQ(table_->PathOf(6), "/build/f.h") << "a directory that is not there";
  EXPECT_EQ(table_->PathOf(7), "");
  EXPECT_EQ(table_->PathOf(~std::uint64_t{0}), "");
}

TEST_F(LineTableTest, PathsOfVersion5) {
  const auto form = [](DwarfForm of) { return Uleb(static_cast<std::uint64_t>(of)); };
  const Bytes directories = Join({{1, 1}, form(DwarfForm::kLineString), {1}, Fixed(0u)});
  const Bytes files = Join({{3, 1},
                            form(DwarfForm::kLineString),
                            {2},
                            form(DwarfForm::kData1),
                            {5},
                            form(DwarfForm::kData16),
                            {1},
                            Fixed(5u),
                            {0},
                            Bytes(16)});
  ASSERT_TRUE(Read(LineTable5(Join({directories, files}), {})));
  EXPECT_EQ(table_->PathOf(0), "/src/a.cc") << "files are counted from 0";
  EXPECT_EQ(table_->PathOf(1), "");
}

TEST_F(LineTableTest, EveryBeginningIsRefusedOrHarmless) {
  const Bytes whole = LineTable4(LineLists4({"sub"}, {{"a.cc", 1}}),
                                 Join({LineSetAddress(0x1000), LineCopy(), LineEndSequence()}));
  for (std::size_t size = 0; size < whole.size(); ++size)
    EXPECT_FALSE(Read(Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size))))
        << size;
  // The same with lengths that agree: a program that ends anywhere.
  for (std::size_t size = 6; size + 4 < whole.size(); ++size) {
    Bytes cut(whole.begin() + 4, whole.begin() + 4 + static_cast<std::ptrdiff_t>(size));
    if (Read(testing::Lengthened(cut))) Lines({0x1000});
  }
}

TEST_F(LineTableTest, RefusesHeadersThatItCannotUnderstand) {
  const Bytes good = LineTable4(LineLists4({}, {{"a.cc", 0}}), {});
  EXPECT_TRUE(Read(good, good.size()));
  EXPECT_FALSE(Read(good, good.size() - 5)) << "more bytes than wanted";
  constexpr std::size_t kVersion = 4;
  constexpr std::size_t kHeaderBytes = 6;
  constexpr std::size_t kLineRange = 14;
  constexpr std::size_t kOpcodeBase = 15;
  for (const auto& [at, value] : {std::pair<std::size_t, std::uint8_t>{kVersion, 1},
                                  {kVersion, 6},
                                  {kHeaderBytes, 0xFF},
                                  {kLineRange, 0},
                                  {kOpcodeBase, 0}}) {
    Bytes bad = good;
    bad[at] = value;
    EXPECT_FALSE(Read(bad)) << at;
  }
  const Bytes endless = Join({{0}, Uleb(1 << 30)});  // files without a form
  EXPECT_FALSE(Read(LineTable5(Join({{0}, Uleb(0), endless}), {})));
}

TEST_F(LineTableTest, AUnitMayHaveNone) {
  testing::DwarfBytes sections;
  DwarfFile file(sections.Finder(), "");
  EXPECT_FALSE(LineTable::Read(file, std::make_shared<DwarfUnit>(), kManyBytes).has_value());
}

}  // namespace
}  // namespace strobe::internal
