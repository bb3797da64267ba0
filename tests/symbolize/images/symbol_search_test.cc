#include "strobe/symbolize/symbol_search.h"

#include <map>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe {
namespace {

using ::testing::ElementsAre;

Module Library() {
  Module module;
  module.path = "/opt/app/lib/libwork.so";
  module.build_id = "abcdef012345";
  return module;
}

TEST(SymbolSearch, AnImageIsAtItsOwnPathOrInADirectoryOfImages) {
  EXPECT_THAT(ImagePaths(Library(), {}), ElementsAre("/opt/app/lib/libwork.so"));
  EXPECT_THAT(ImagePaths(Library(), {.image_directories = {"/copy"}, .debuginfod_caches = {"/c"}}),
              ElementsAre("/opt/app/lib/libwork.so", "/copy//opt/app/lib/libwork.so",
                          "/copy/abcdef012345/libwork.so", "/copy/libwork.so",
                          "/c/abcdef012345/executable"));
}

TEST(SymbolSearch, AWindowsImageIsAlsoLookedForByItsNameAlone) {
  Module module = Library();
  module.format = ImageFormat::kPe;
  module.kind = ModuleKind::kProgram;
  module.path = "C:\\app\\work.exe";
  EXPECT_THAT(ImagePaths(module, {.image_directories = {"/copy"}}),
              ElementsAre(module.path, "/copy/C:\\app\\work.exe", "/copy/abcdef012345/work.exe",
                          "/copy/work.exe"));
}

TEST(SymbolSearch, ARunningProgramIsAlsoAtTheKernelsPath) {
  Module module = Library();
  module.kind = ModuleKind::kProgram;
  EXPECT_THAT(ImagePaths(module, {}), ElementsAre("/opt/app/lib/libwork.so", "/proc/self/exe"));
}

TEST(SymbolSearch, ALibraryOfThisProcessIsAlsoAtTheKernelsLinkToItsMapping) {
  Module module = Library();
  module.start = 0x7f00'1000;
  module.limit = 0x7f00'a000;
  EXPECT_THAT(ImagePaths(module, {}),
              ElementsAre("/opt/app/lib/libwork.so", "/proc/self/map_files/7f001000-7f00a000"));
  module.build_id = "";
  EXPECT_THAT(ImagePaths(module, {}), ElementsAre("/opt/app/lib/libwork.so"))
      << "nothing tells it from what another process has there";
}

TEST(SymbolSearch, DebugInformationIsFoundByBuildIdAndByLink) {
  const SymbolSearch search{.debug_directories = {"/usr/lib/debug", "/d"},
                            .debuginfod_caches = {"/c"}};
  const Module module = Library();
  EXPECT_THAT(
      DebugPaths(module, module.path, "libwork.debug", search),
      ElementsAre("/usr/lib/debug/.build-id/ab/cdef012345.debug",
                  "/d/.build-id/ab/cdef012345.debug", "/opt/app/lib/libwork.debug",
                  "/opt/app/lib/.debug/libwork.debug", "/usr/lib/debug//opt/app/lib/libwork.debug",
                  "/d//opt/app/lib/libwork.debug", "/c/abcdef012345/debuginfo"));
}

TEST(SymbolSearch, NeitherABuildIdNorALinkLeadsOutOfItsDirectory) {
  Module module = Library();
  module.build_id = "../../etc/passwd";
  EXPECT_THAT(DebugPaths(module, module.path, "../../etc/passwd", SymbolSearch()), ElementsAre());
  EXPECT_THAT(ImagePaths(module, {.debuginfod_caches = {"/c"}}), ElementsAre(module.path));
}

TEST(SymbolSearch, OnlyABuildIdIsFetched) {
  SymbolSearch search;
  EXPECT_EQ(FetchedPath(Library(), search), "");
  search.fetch = [](const std::string& build_id) { return "/fetched/" + build_id; };
  EXPECT_EQ(FetchedPath(Library(), search), "/fetched/abcdef012345");
  Module module = Library();
  module.build_id = "../../etc/passwd";
  EXPECT_EQ(FetchedPath(module, search), "");
}

TEST(SymbolSearch, AListIsSeparatedByColonsOrSemicolonsButNotAfterADrive) {
  EXPECT_THAT(ParsePathList("/a:/b/c;d"), ElementsAre("/a", "/b/c", "d"));
  EXPECT_THAT(ParsePathList("C:\\symbols;D:/more"), ElementsAre("C:\\symbols", "D:/more"));
  EXPECT_THAT(ParsePathList(":;:"), ElementsAre());
  EXPECT_THAT(ParsePathList(""), ElementsAre());
}

TEST(SymbolSearch, DebuginfodsCacheIsWhereItsClientPutsIt) {
  std::map<std::string, std::string> variables;
  const auto cache = [&] {
    return DebuginfodCache([&](const char* name) {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    });
  };
  EXPECT_EQ(cache(), "");
  variables["HOME"] = "/home/me";
  EXPECT_EQ(cache(), "/home/me/.cache/debuginfod_client");
  variables["XDG_CACHE_HOME"] = "/cache";
  EXPECT_EQ(cache(), "/cache/debuginfod_client");
  variables["DEBUGINFOD_CACHE_PATH"] = "/mine";
  EXPECT_EQ(cache(), "/mine");
}

}  // namespace
}  // namespace strobe
