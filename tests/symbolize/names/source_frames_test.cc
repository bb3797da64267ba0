#include "../../../src/symbolize/names/source_frames.h"

#include <map>
#include <vector>

#include "../debug_program.h"
#include "../elf_bytes.h"
#include "../memory_files.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(SourceFramesTest, FindsTheFramesOfEachAddress) {
  testing::MemoryFiles files;
  Module module;
  module.path = "/lib/x.so";
  module.build_id = "abcd";
  const std::vector<std::uint64_t> addresses = {0x1000, 0x1014, 0x7000};
  std::map<std::uint64_t, std::vector<SourceFrame>> found;
  const auto take = [&](std::uint64_t address, std::span<const SourceFrame> frames) {
    found[address] = {frames.begin(), frames.end()};
  };
  EXPECT_FALSE(FindSourceFrames(module, addresses, files, {}, take)) << "there is no file";
  testing::ElfBytes elf;
  elf.AddBuildId({0xAB, 0xCD});
  for (const auto& [name, content] : testing::DebugProgram())
    elf.Add({.name = name, .content = content});
  files.Write("/lib/x.so", elf.File());
  EXPECT_TRUE(FindSourceFrames(module, addresses, files, {}, take));
  ASSERT_EQ(found.size(), 3u);
  EXPECT_EQ(found[0x1000].size(), 1u);
  ASSERT_EQ(found[0x1014].size(), 2u);
  EXPECT_EQ(found[0x1014][0].discriminator, 6u) << "of the line";
  EXPECT_EQ(found[0x1014][1].discriminator, 9u) << "of the call";
  EXPECT_TRUE(found[0x7000].empty());
}

}  // namespace
}  // namespace strobe::internal
