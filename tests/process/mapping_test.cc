#include "strobe/process/mapping.h"

#include <algorithm>
#include <filesystem>
#include <string>
#include <system_error>

#include "gtest/gtest.h"

namespace strobe::testing {
namespace {

TEST(ParseMaps, TakesWhatIsCode) {
  const auto maps = ParseMaps(
      "400000-401000 r--p 00000000 08:01 12 /opt/program\n"
      "401000-402000 r-xp 00001000 08:01 12 /opt/program\n"
      "7f1200000000-7f1200001000 rwxp 00000000 00:00 0 \n"
      "7f1300000000-7f1300002000 r-xs 00003000 08:01 13                 /usr/lib/a library.so\n"
      "7ffd00000000-7ffd00001000 r-xp 00000000 00:00 0                  [vdso]\n");
  const std::vector<Mapping> expected = {
      {0x401000, 0x402000, 0x1000, "/opt/program", "", 12},
      {0x7F1200000000, 0x7F1200001000, 0, ""},
      {0x7F1300000000, 0x7F1300002000, 0x3000, "/usr/lib/a library.so", "", 13},
      {0x7FFD00000000, 0x7FFD00001000, 0, "[vdso]"}};
  EXPECT_EQ(maps, expected);
}

TEST(ParseMaps, LeavesOutWhatIsNoMapping) {
  EXPECT_TRUE(ParseMaps("").empty());
  for (const char* line : {"nothing", "401000 r-xp 0 0 0 /a", "402000-401000 r-xp 0 08:01 1 /a",
                           "1-2 r-x", "zz-401000 r-xp 0 08:01 1 /a", "1-401000 r-xp y 08:01 1 /a"})
    EXPECT_TRUE(ParseMaps(line).empty()) << line;
  const auto maps = ParseMaps("nothing\n1000-2000 --xp 0 08:01 1 /a\\012b");
  ASSERT_EQ(maps.size(), 1u);
  EXPECT_EQ(maps[0].path, "/a\nb");
}

TEST(LinksTo, LeadToTheFileWhateverHasBecomeOfItsPath) {
  const auto maps = ReadMaps("self");
  if (!maps.ok()) GTEST_SKIP() << maps.status().ToString();
  std::error_code error;
  const std::string program = std::filesystem::read_symlink("/proc/self/exe", error).string();
  if (error) GTEST_SKIP() << "no links in /proc";
  const auto own = std::ranges::find(*maps, program, &Mapping::path);
  ASSERT_NE(own, maps->end());
  EXPECT_NE(own->inode, 0u);
  for (const std::string& path : {program, program + " (deleted)"}) {
    Mapping mapping = *own;
    mapping.path = path;
    EXPECT_EQ(LinksTo(mapping, "self").back(), "/proc/self/exe") << path;
  }
  EXPECT_TRUE(LinksTo({.start = own->start, .limit = own->limit, .path = "/other"}, "self").empty())
      << "the process has mapped another file there since";
  EXPECT_TRUE(LinksTo(*own, "4294967295").empty());
}

TEST(ReadMaps, SaysThatThereIsNoSuchProcess) {
  EXPECT_EQ(ReadMaps("4294967295").status().code(), absl::StatusCode::kNotFound);
}

}  // namespace
}  // namespace strobe::testing
