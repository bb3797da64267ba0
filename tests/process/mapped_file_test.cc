#include "process/mapped_file.h"

#include <algorithm>

#include "gtest/gtest.h"
#include "strobe/platform/native.h"

namespace strobe::internal {
namespace {

TEST(IsFile, MemoryWithANameIsNone) {
  EXPECT_TRUE(IsFile("/usr/lib/libc.so.6"));
  EXPECT_TRUE(IsFile("/memfd:code (deleted)")) << "links lead to it";
  for (const char* path :
       {"", "[vdso]", "[anon:code]", "//anon", "/dev/zero (deleted)", "/anon_hugepage (deleted)"})
    EXPECT_FALSE(IsFile(path)) << path;
}

// This process's own code, as if it had moved.
TEST(FileOfMoved, IsTheOneWhoseCodeLiesThere) {
  const SymbolFiles& files = NativePlatform::Files();
  const auto maps = ReadMaps("self");
  if (!maps.ok()) GTEST_SKIP() << maps.status().ToString();
  const auto own = std::ranges::find_if(
      *maps, [&](const Mapping& mapping) { return OpenMapped(mapping, "self", files) != nullptr; });
  ASSERT_NE(own, maps->end());
  Mapping moved = *own;
  moved.path = "";
  moved.inode = moved.file_offset = 0;
  const Mapping beside = *own;
  EXPECT_EQ(FileOfMoved(moved, {&beside, 1}, "self", files), *own);
  moved.limit += 0x100000;
  EXPECT_EQ(FileOfMoved(moved, {&beside, 1}, "self", files), std::nullopt) << "beyond its segment";
  EXPECT_EQ(FileOfMoved(*own, {}, "self", files), std::nullopt);
}

}  // namespace
}  // namespace strobe::internal
