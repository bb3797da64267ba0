#include "../../../src/symbolize/dwarf/dwarf_source.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "../debug_program.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using testing::DebugProgram;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

constexpr std::size_t kAnySize = 1 << 20;

class DwarfSourceTest : public ::testing::Test {
 protected:
  void Open(const testing::DwarfBytes& sections, std::size_t max_unit_bytes = kAnySize) {
    DwarfSource::Files files{
        .main = std::make_unique<DwarfFile>(sections.Finder(), ""),
        .supplement = nullptr,
        .split = SplitUnits([](const std::string&) { return std::nullopt; }, "")};
    index_ = {};
    source_.emplace(std::move(files), index_, max_unit_bytes);
  }
  bool Find(
      const std::vector<std::uint64_t>& addresses,
      const std::function<bool()>& is_late = [] { return false; }) {
    return source_->Find(addresses, is_late,
                         [&](std::uint64_t address, std::span<const SourceFrame> frames) {
                           EXPECT_FALSE(found_.contains(address)) << "each is found once";
                           found_[address] = {frames.begin(), frames.end()};
                         });
  }

  DwarfIndex index_;
  std::optional<DwarfSource> source_;
  std::map<std::uint64_t, std::vector<SourceFrame>> found_;
};

const SourceFrame kAtF{.function = "f",
                       .file = "/build/f.cc",
                       .line = 11,
                       .column = 0,
                       .function_line = 10,
                       .declaration_line = 10};
const SourceFrame kInG{.function = "_Z1gv",
                       .file = "/build/f.cc",
                       .line = 4,
                       .column = 9,
                       .function_line = 3,
                       .declaration_line = 3,
                       .discriminator = 6};
const SourceFrame kCallOfG{.function = "f",
                           .file = "/build/f.cc",
                           .line = 12,
                           .column = 5,
                           .function_line = 10,
                           .declaration_line = 10,
                           .discriminator = 9};

TEST_F(DwarfSourceTest, FindsFunctionsAndLinesInnermostFirst) {
  Open(DebugProgram());
  ASSERT_TRUE(Find({0x1000, 0x1014, 0x1100, 0x5000}));
  EXPECT_THAT(found_, SizeIs(4));
  EXPECT_THAT(found_[0x1000], ElementsAre(kAtF));
  EXPECT_THAT(found_[0x1014], ElementsAre(kInG, kCallOfG));
  ASSERT_THAT(found_[0x1100], SizeIs(1));
  EXPECT_EQ(found_[0x1100][0].function, "") << "a line without a function";
  EXPECT_EQ(found_[0x1100][0].line, 13u);
  EXPECT_THAT(found_[0x5000], IsEmpty());
}

TEST_F(DwarfSourceTest, LinesMayBeMissing) {
  testing::DwarfBytes sections = DebugProgram();
  sections.erase(".debug_line");
  Open(sections);
  ASSERT_TRUE(Find({0x1014}));
  ASSERT_THAT(found_[0x1014], SizeIs(2));
  EXPECT_EQ(found_[0x1014][0].function, "_Z1gv");
  EXPECT_EQ(found_[0x1014][0].line, 0u);
  EXPECT_EQ(found_[0x1014][1].line, 12u) << "where it is called is no matter of the table";
  EXPECT_EQ(found_[0x1014][1].file, "");
}

TEST_F(DwarfSourceTest, AUnitThatIsTooLargeHasNoLines) {
  Open(DebugProgram(), 10);
  ASSERT_TRUE(Find({0x1000}));
  EXPECT_THAT(found_[0x1000], IsEmpty());
}

TEST_F(DwarfSourceTest, DoesSomethingInEachCallThoughItIsLate) {
  testing::DwarfBytes sections = DebugProgram();
  // A second unit, whose entry refers to nothing.
  sections[".debug_info"] =
      testing::Join({sections[".debug_info"],
                     testing::Unit4(testing::Join({{1},
                                                   testing::ZeroEnded("x"),
                                                   testing::ZeroEnded("/x"),
                                                   testing::Fixed(std::uint32_t{0xFFFFFF}),
                                                   testing::Fixed(std::uint64_t{0x9000}),
                                                   testing::Fixed(std::uint64_t{0x10}),
                                                   {0}}))});
  Open(sections);
  std::vector<std::uint64_t> wanted = {0x1000, 0x1014, 0x9000};
  int calls = 0;
  bool is_done = false;
  std::size_t after_first = 0;
  while (!is_done && calls < 20) {
    is_done = Find(wanted, [] { return true; });
    std::erase_if(wanted, [&](std::uint64_t address) { return found_.contains(address); });
    if (after_first == 0) after_first = found_.size();
    ++calls;
  }
  EXPECT_TRUE(is_done);
  EXPECT_GE(calls, 3);
  EXPECT_EQ(after_first, 2u) << "the unit with the most addresses comes first";
  EXPECT_THAT(found_[0x1014], ElementsAre(kInG, kCallOfG));
  EXPECT_THAT(found_[0x9000], IsEmpty());
}

TEST_F(DwarfSourceTest, HostileBytesCostLinesOnly) {
  const testing::DwarfBytes good = DebugProgram();
  for (const auto& [name, bytes] : good) {
    for (std::size_t at = 0; at < bytes.size(); ++at) {
      testing::DwarfBytes bad = good;
      bad[name][at] ^= 0xFF;
      Open(bad);
      found_.clear();
      EXPECT_TRUE(Find({0x1000, 0x1014})) << name << " " << at;
      EXPECT_THAT(found_, SizeIs(2)) << name << " " << at;
    }
  }
}

}  // namespace
}  // namespace strobe::internal
