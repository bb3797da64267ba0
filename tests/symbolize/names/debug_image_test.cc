#include "../../../src/symbolize/names/debug_image.h"

#include <optional>

#include "../debug_program.h"
#include "../elf_bytes.h"
#include "../memory_files.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

testing::Bytes DebugElf(const testing::DwarfBytes& sections) {
  testing::ElfBytes elf;
  elf.AddBuildId({0xAB, 0xCD});
  for (const auto& [name, content] : sections) elf.Add({.name = name, .content = content});
  return elf.File();
}

TEST(DebugImageTest, IsTheFirstFileWithDebugInformation) {
  testing::MemoryFiles files;
  Module module;
  module.path = "/lib/x.so";
  module.build_id = "abcd";
  EXPECT_FALSE(OpenDebugImage(module, files, {}).has_value()) << "no file";
  files.Write("/lib/x.so", DebugElf({}));
  EXPECT_FALSE(OpenDebugImage(module, files, {}).has_value()) << "nothing in it";
  files.Write("/usr/lib/debug/.build-id/ab/cd.debug", DebugElf(testing::DebugProgram()));
  const std::optional<DebugImage> image = OpenDebugImage(module, files, {});
  ASSERT_TRUE(image.has_value());
  EXPECT_TRUE(image->files.main->has_units());
  EXPECT_EQ(image->base, 0u);
}

}  // namespace
}  // namespace strobe::internal
