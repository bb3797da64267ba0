#include "strobe/core/module_map.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace strobe {
namespace {

Module At(Address start, Address limit, std::string path) {
  return {.start = start,
          .limit = limit,
          .file_offset = 0,
          .load_bias = 0,
          .path = std::move(path),
          .build_id = ""};
}

TEST(ModuleMap, FindsTheModuleOfAnAddress) {
  const ModuleMap map({At(0x3000, 0x4000, "second"), At(0x1000, 0x2000, "first")});
  ASSERT_EQ(map.modules().size(), 2u);
  EXPECT_EQ(map.modules()[0].path, "first");
  EXPECT_EQ(map.Find(0x1000), 0u);
  EXPECT_EQ(map.Find(0x1FFF), 0u);
  EXPECT_EQ(map.Find(0x3800), 1u);
  EXPECT_EQ(map.Find(0xFFF), std::nullopt);
  EXPECT_EQ(map.Find(0x2000), std::nullopt);  // the limit is outside
  EXPECT_EQ(map.Find(0x4000), std::nullopt);
  EXPECT_EQ(map.Find(0), std::nullopt);
  EXPECT_EQ(map.Find(~Address{0}), std::nullopt);
}

TEST(ModuleMap, EmptyFindsNothing) { EXPECT_EQ(ModuleMap().Find(0x1000), std::nullopt); }

TEST(ModuleMap, LeavesOutEmptyAndOverlappingModules) {
  const ModuleMap map({At(0x1000, 0x3000, "first"), At(0x2000, 0x5000, "overlaps"),
                       At(0x6000, 0x6000, "empty"), At(0x9000, 0x8000, "backwards"),
                       At(0x3000, 0x4000, "neighbour")});
  ASSERT_EQ(map.modules().size(), 2u);
  EXPECT_EQ(map.modules()[map.Find(0x2800).value()].path, "first");
  EXPECT_EQ(map.modules()[map.Find(0x3000).value()].path, "neighbour");
  EXPECT_EQ(map.Find(0x4800), std::nullopt);
}

TEST(ModuleMap, GeneratedCodeIsReplacedAsAWhole) {
  const auto code = [](Address start, Address limit, std::string path) {
    Module module = At(start, limit, std::move(path));
    module.kind = ModuleKind::kGeneratedCode;
    return module;
  };
  const auto paths = [](const ModuleMap& map) {
    std::vector<std::string> paths;
    for (const Module& module : map.modules()) paths.push_back(module.path);
    return paths;
  };
  ModuleMap map({At(0x3000, 0x4000, "one"), At(0x5000, 0x6000, "other")});
  map.ReplaceGenerated(std::vector<Module>{code(0x1000, 0x1010, "below"),
                                           code(0x3FFF, 0x4001, "overlaps"),
                                           code(0x4800, 0x4810, "between")});
  EXPECT_EQ(paths(map), (std::vector<std::string>{"below", "one", "between", "other"}));
  map.ReplaceGenerated(std::vector<Module>{code(0x9000, 0x9010, "above")});
  EXPECT_EQ(paths(map), (std::vector<std::string>{"one", "other", "above"}));
  map.ReplaceGenerated({});
  EXPECT_EQ(paths(map), (std::vector<std::string>{"one", "other"}));
}

TEST(ModuleMap, ReachesTheTopOfTheAddressSpace) {
  const ModuleMap map({At(0xFFFFFFFFFF600000, 0xFFFFFFFFFF601000, "[vsyscall]")});
  EXPECT_EQ(map.Find(0xFFFFFFFFFF600010), 0u);
}

TEST(ModuleMap, OverlapsWhatSharesAByteWithAModule) {
  const ModuleMap map({At(0x1000, 0x2000, "first"), At(0x4000, 0x5000, "second")});
  const auto overlaps = [&](Address start, Address limit) {
    return Overlaps(map.modules(), start, limit);
  };
  EXPECT_TRUE(overlaps(0x1800, 0x1900));
  EXPECT_TRUE(overlaps(0x0, 0x1001));
  EXPECT_TRUE(overlaps(0x1FFF, 0x3000));
  EXPECT_TRUE(overlaps(0x1000, 0x2000));
  EXPECT_TRUE(overlaps(0x3000, 0x6000));
  EXPECT_FALSE(overlaps(0x0, 0x1000));
  EXPECT_FALSE(overlaps(0x2000, 0x4000));
  EXPECT_FALSE(overlaps(0x5000, 0x9000));
  EXPECT_FALSE(Overlaps({}, 0, 0x1000));
}

}  // namespace
}  // namespace strobe
