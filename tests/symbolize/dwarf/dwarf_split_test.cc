#include "../../../src/symbolize/dwarf/dwarf_split.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
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

constexpr std::uint64_t kDwoId = 0x1122334455667788;
constexpr std::uint64_t kOtherDwoId = 0x99;

// The sections of a .dwo file with a unit of this id and name.
testing::DwarfBytes Dwo(std::uint64_t id, const char* name) {
  testing::DwarfBytes sections;
  sections[".debug_abbrev.dwo"] =
      Join({Shape(1, DwarfTag::kCompileUnit, false, {{DwarfAttribute::kName, DwarfForm::kString}}),
            {0}});
  sections[".debug_info.dwo"] =
      testing::Unit5(Join({{1}, ZeroEnded(name)}), DwarfUnitType::kSplitCompile, Fixed(id));
  return sections;
}

// A program whose only unit is a skeleton.
class SplitUnitsTest : public ::testing::Test {
 protected:
  SplitUnitsTest() { SetSkeleton("unit.dwo"); }

  void SetSkeleton(const char* dwo_name) {
    main_sections_[".debug_abbrev"] =
        Join({Shape(1, DwarfTag::kSkeletonUnit, false,
                    {{DwarfAttribute::kDwoName, DwarfForm::kString},
                     {DwarfAttribute::kCompilationDirectory, DwarfForm::kString},
                     {DwarfAttribute::kLowPc, DwarfForm::kAddress},
                     {DwarfAttribute::kAddressBase, DwarfForm::kSectionOffset}}),
              {0}});
    main_sections_[".debug_info"] = testing::Unit5(Join({{1},
                                                         ZeroEnded(dwo_name),
                                                         ZeroEnded("/build"),
                                                         Fixed(std::uint64_t{0x1000}),
                                                         Fixed(std::uint32_t{8})}),
                                                   DwarfUnitType::kSkeleton, Fixed(kDwoId));
    main_ = std::make_unique<DwarfFile>(main_sections_.Finder(), "");
    skeleton_ = main_->UnitAt(0);
    ASSERT_NE(skeleton_, nullptr);
    ASSERT_EQ(skeleton_->dwo_name, dwo_name);
  }
  // The name of the unit that is found; empty if there is none.
  std::string Open() {
    SplitUnits units(
        [this](const std::string& path) -> std::optional<DwarfFile::SectionFinder> {
          opened_.push_back(path);
          const auto found = files_.find(path);
          if (found == files_.end()) return std::nullopt;
          return found->second.Finder();
        },
        "/program.dwp");
    split_ = units.Open(*main_, *skeleton_);
    return split_.has_value() ? split_->unit->name : "";
  }
  // A package of two units. `version` is that of its index.
  void AddPackage(std::uint32_t version) {
    const testing::DwarfBytes first = Dwo(kOtherDwoId, "other");
    const testing::DwarfBytes second = Dwo(kDwoId, "packed");
    testing::DwarfBytes package;
    std::vector<std::uint32_t> offsets;
    std::vector<std::uint32_t> sizes;
    for (const testing::DwarfBytes* const part : {&first, &second}) {
      for (const char* const name : {".debug_info.dwo", ".debug_abbrev.dwo"}) {
        offsets.push_back(static_cast<std::uint32_t>(package[name].size()));
        sizes.push_back(static_cast<std::uint32_t>(part->at(name).size()));
        package[name] = Join({package[name], part->at(name)});
      }
    }
    Bytes index = Join({Fixed(version), Fixed(2u), Fixed(2u), Fixed(4u)});  // columns, units, slots
    for (const std::uint64_t id : {std::uint64_t{0}, kDwoId, std::uint64_t{0}, kOtherDwoId})
      index = Join({index, Fixed(id)});
    for (const std::uint32_t row : {0u, 2u, 0u, 1u}) index = Join({index, Fixed(row)});
    for (const std::uint32_t column : {1u, 3u}) index = Join({index, Fixed(column)});
    for (const std::uint32_t offset : offsets) index = Join({index, Fixed(offset)});
    for (const std::uint32_t size : sizes) index = Join({index, Fixed(size)});
    package[".debug_cu_index"] = index;
    files_["/program.dwp"] = package;
  }

  testing::DwarfBytes main_sections_;
  std::map<std::string, testing::DwarfBytes> files_;
  std::vector<std::string> opened_;
  std::unique_ptr<DwarfFile> main_;
  std::shared_ptr<const DwarfUnit> skeleton_;
  std::optional<SplitUnits::Split> split_;
};

TEST_F(SplitUnitsTest, AFileBesideTheProgramHasTheEntries) {
  files_["/build/unit.dwo"] = Dwo(kDwoId, "own");
  EXPECT_EQ(Open(), "own");
  EXPECT_THAT(opened_, ElementsAre("/program.dwp", "/build/unit.dwo"));
  EXPECT_EQ(split_->file->main, main_.get());
  EXPECT_EQ(split_->unit->low_pc.number, 0x1000u) << "its skeleton's";
  EXPECT_EQ(split_->unit->address_base, 8u);
}

TEST_F(SplitUnitsTest, AFileMayHaveAnAbsolutePath) {
  SetSkeleton("/objects/unit.dwo");
  files_["/objects/unit.dwo"] = Dwo(kDwoId, "own");
  EXPECT_EQ(Open(), "own");
}

TEST_F(SplitUnitsTest, AnotherBuildsFileIsNotTaken) {
  files_["/build/unit.dwo"] = Dwo(kOtherDwoId, "other");
  EXPECT_EQ(Open(), "");
  files_["/build/unit.dwo"] = {};
  EXPECT_EQ(Open(), "");
  files_.clear();
  EXPECT_EQ(Open(), "");
}

TEST_F(SplitUnitsTest, APackageHasManyUnits) {
  for (const std::uint32_t version : {2u, 5u}) {
    AddPackage(version);
    opened_.clear();
    EXPECT_EQ(Open(), "packed");
    EXPECT_THAT(opened_, ElementsAre("/program.dwp"));
  }
}

TEST_F(SplitUnitsTest, WithoutTheUnitInThePackageTheFileCounts) {
  AddPackage(5);
  // The index knows the id by another number.
  Bytes& index = files_["/program.dwp"][".debug_cu_index"];
  index[16 + 8] ^= 1;
  EXPECT_EQ(Open(), "");
  files_["/build/unit.dwo"] = Dwo(kDwoId, "own");
  EXPECT_EQ(Open(), "own");
}

TEST_F(SplitUnitsTest, BrokenIndexesAreHarmless) {
  AddPackage(5);
  files_["/build/unit.dwo"] = Dwo(kDwoId, "own");
  const Bytes good = files_["/program.dwp"][".debug_cu_index"];
  for (std::size_t size = 0; size < good.size(); ++size) {
    files_["/program.dwp"][".debug_cu_index"].assign(
        good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_EQ(Open(), "own") << size;
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    Bytes bad = good;
    bad[at] = 0xFF;
    files_["/program.dwp"][".debug_cu_index"] = bad;
    const std::string name = Open();
    EXPECT_TRUE(name == "own" || name == "packed") << at << " " << name;
  }
}

}  // namespace
}  // namespace strobe::internal
