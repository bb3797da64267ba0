#include "process/mapped_file.h"

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/platform/native.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::SizeIs;

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

TEST(OpenFirst, TriesTheProcesssRootThenThePathsThenItsLinks) {
  const auto maps = ReadMaps("self");
  if (!maps.ok()) GTEST_SKIP() << maps.status().ToString();
  const auto program = std::ranges::find_if(
      *maps, [](const Mapping& mapping) { return !LinksTo(mapping, "self").empty(); });
  ASSERT_NE(program, maps->end());
  const std::vector<std::string> paths = {"/first", "/second"};
  std::vector<std::string> tried;
  const auto open = [&](const std::string& wanted) {
    return [&tried, wanted](const std::string& path) {
      tried.push_back(path);
      return path == wanted ? std::make_unique<std::string>(path) : nullptr;
    };
  };
  EXPECT_EQ(*OpenFirst(*program, "self", paths, open("/second")), "/second");
  EXPECT_THAT(tried, ElementsAre("/proc/self/root" + program->path, "/first", "/second"));
  tried.clear();
  EXPECT_EQ(OpenFirst(*program, "", paths, open("/third")), nullptr);
  EXPECT_THAT(tried, ElementsAre("/first", "/second")) << "of a process that has ended";
  tried.clear();
  const std::vector<std::string> links = LinksTo(*program, "self");
  EXPECT_EQ(*OpenFirst(*program, "self", {}, open(links.back())), links.back());
  EXPECT_THAT(tried, SizeIs(1 + links.size()));
}

}  // namespace
}  // namespace strobe::internal
