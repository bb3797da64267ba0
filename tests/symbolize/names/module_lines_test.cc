#include "../../../src/symbolize/names/module_lines.h"

#include <string>
#include <vector>

#include "../debug_program.h"
#include "../elf_bytes.h"
#include "../memory_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using testing::Bytes;
using testing::ElfBytes;
using ::testing::IsEmpty;
using ::testing::SizeIs;

Bytes ImageWith(const testing::DwarfBytes& sections) {
  ElfBytes elf;
  elf.AddBuildId({0xAB, 0xCD});
  for (const auto& [name, content] : sections) elf.Add({.name = name, .content = content});
  return elf.File();
}

class ModuleLinesTest : public ::testing::Test {
 protected:
  ModuleLinesTest() {
    module_.path = "/lib/x.so";
    module_.build_id = "abcd";
    files_.Write("/lib/x.so", ImageWith(testing::DebugProgram()));
  }
  bool LookUp(const std::vector<std::uint64_t>& addresses, bool is_late = false) {
    return lines_.LookUp(module_, addresses, files_, options_, [=] { return is_late; });
  }
  // "function file:line", innermost first.
  std::vector<std::string> At(std::uint64_t address) {
    std::vector<std::string> texts;
    for (const ModuleLines::Line& line : lines_.Find(address))
      texts.push_back(std::string(lines_.TextOf(line.function)) + " " +
                      std::string(lines_.TextOf(line.file)) + ":" + std::to_string(line.line));
    return texts;
  }

  Module module_;
  testing::MemoryFiles files_;
  ImageSymbolizerOptions options_;
  ModuleLines lines_;
};

TEST_F(ModuleLinesTest, FindsWhatWasLookedUp) {
  EXPECT_THAT(At(0x1014), IsEmpty());
  EXPECT_TRUE(LookUp({0x1014, 0x1014, 0x7000}));
  EXPECT_THAT(At(0x1014), ::testing::ElementsAre("_Z1gv /build/f.cc:4", "f /build/f.cc:12"));
  EXPECT_THAT(At(0x7000), IsEmpty());
  EXPECT_THAT(At(0x1000), IsEmpty()) << "it has not been asked for";
  EXPECT_EQ(lines_.Find(0x1014)[1].column, 5u);
  EXPECT_EQ(lines_.Find(0x1014)[1].function_line, 10u);
  EXPECT_GT(lines_.memory_bytes(), sizeof(lines_));
}

TEST_F(ModuleLinesTest, KeepsWhatItHasFound) {
  EXPECT_TRUE(LookUp({0x1000}));
  const std::size_t opened = files_.opened();
  EXPECT_TRUE(LookUp({0x1000}));
  EXPECT_EQ(files_.opened(), opened) << "nothing new is asked for";
  EXPECT_TRUE(LookUp({0x1000, 0x1014}));
  EXPECT_THAT(At(0x1000), SizeIs(1));
  EXPECT_THAT(At(0x1014), SizeIs(2));
}

TEST_F(ModuleLinesTest, WhatIsOfAnotherFileIsNotValidAnyMore) {
  EXPECT_TRUE(LookUp({0x1000}));
  files_.Write("/lib/x.so", ImageWith(testing::DebugProgram()));
  EXPECT_TRUE(LookUp({0x1014}));
  EXPECT_THAT(At(0x1000), IsEmpty());
  EXPECT_THAT(At(0x1014), SizeIs(2));
}

TEST_F(ModuleLinesTest, AModuleMayHaveNoDebugInformation) {
  files_.Write("/lib/x.so", ImageWith({}));
  EXPECT_FALSE(LookUp({0x1000}));
  files_.Remove("/lib/x.so");
  EXPECT_FALSE(LookUp({0x1000}));
  EXPECT_THAT(At(0x1000), IsEmpty());
  EXPECT_TRUE(LookUp({})) << "there is nothing to look up";
}

TEST_F(ModuleLinesTest, ComesToAnEndThoughEachCallIsLate) {
  int calls = 0;
  while (!LookUp({0x1000, 0x1014}, true) && calls < 10) ++calls;
  EXPECT_LT(calls, 10);
  EXPECT_THAT(At(0x1014), SizeIs(2));
}

TEST_F(ModuleLinesTest, UnitsBeyondTheCacheAreNotRead) {
  options_.cache_bytes = 10;
  EXPECT_TRUE(LookUp({0x1014}));
  EXPECT_THAT(At(0x1014), IsEmpty());
}

}  // namespace
}  // namespace strobe::internal
