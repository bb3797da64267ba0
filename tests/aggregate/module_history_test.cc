#include "strobe/aggregate/module_history.h"

#include <gtest/gtest.h>

#include <string>

namespace strobe {
namespace {

Module MakeModule(Address start, const std::string& path) {
  return {.start = start,
          .limit = start + 0x1000,
          .file_offset = 0,
          .load_bias = start,
          .path = path,
          .build_id = "id-" + path};
}

std::string PathOf(const ModuleHistory& history, std::uint32_t generation, Address address) {
  const auto found = history.Find(generation, address);
  return found ? history.modules()[*found].path : "none";
}

TEST(ModuleHistory, LooksUpInTheGenerationOfTheRecord) {
  ModuleHistory history;
  history.Add(1, ModuleMap({MakeModule(0x1000, "main"), MakeModule(0x5000, "old")}));
  history.Add(2, ModuleMap({MakeModule(0x1000, "main"), MakeModule(0x5000, "new")}));
  EXPECT_EQ(PathOf(history, 1, 0x5800), "old");
  EXPECT_EQ(PathOf(history, 2, 0x5800), "new");
  EXPECT_EQ(PathOf(history, 1, 0x1000), "main");
  EXPECT_EQ(PathOf(history, 1, 0x2000), "none") << "the limit is not inside";
  EXPECT_EQ(PathOf(history, 1, 0), "none");
  EXPECT_EQ(history.modules().size(), 3u) << "each module once";
  EXPECT_NE(history.Canonical(1), history.Canonical(2));
}

TEST(ModuleHistory, RecordJustAfterALoadCarriesTheGenerationBefore) {
  ModuleHistory history;
  history.Add(1, ModuleMap({MakeModule(0x1000, "main"), MakeModule(0x5000, "gone")}));
  history.Add(2, ModuleMap({MakeModule(0x1000, "main"), MakeModule(0x9000, "fresh")}));
  EXPECT_EQ(PathOf(history, 1, 0x9000), "fresh");
  EXPECT_EQ(PathOf(history, 2, 0x5000), "none") << "never in an older one";
}

TEST(ModuleHistory, KnowsWhatHasGone) {
  ModuleHistory history;
  EXPECT_FALSE(history.WasUnloaded(1, 0x1000));
  history.Add(1, ModuleMap({MakeModule(0x1000, "main"), MakeModule(0x5000, "gone"),
                            MakeModule(0x7000, "old")}));
  history.Add(2, ModuleMap({MakeModule(0x1000, "main"), MakeModule(0x7000, "new"),
                            MakeModule(0x9000, "fresh")}));
  EXPECT_FALSE(history.WasUnloaded(1, 0x1000));
  EXPECT_TRUE(history.WasUnloaded(1, 0x5000));
  EXPECT_TRUE(history.WasUnloaded(1, 0x7000)) << "another has its place";
  EXPECT_FALSE(history.WasUnloaded(1, 0x9000)) << "just loaded";
  EXPECT_FALSE(history.WasUnloaded(1, 0xF000)) << "no module's then or now";
  EXPECT_FALSE(history.WasUnloaded(2, 0x5000));
  EXPECT_FALSE(history.WasUnloaded(2, 0x7000));
}

TEST(ModuleHistory, GenerationsThatOnlyAddShareAList) {
  ModuleHistory history;
  history.Add(1, ModuleMap({MakeModule(0x1000, "main")}));
  history.Add(2, ModuleMap({MakeModule(0x1000, "main"), MakeModule(0x5000, "lib")}));
  EXPECT_EQ(history.Canonical(1), history.Canonical(2));
  EXPECT_EQ(PathOf(history, 1, 0x5000), "lib");
  history.Add(3, ModuleMap({MakeModule(0x1000, "main")}));
  EXPECT_NE(history.Canonical(2), history.Canonical(3));
  EXPECT_EQ(PathOf(history, 2, 0x5000), "lib");
  EXPECT_EQ(PathOf(history, 3, 0x5000), "none");
}

TEST(ModuleHistory, UnknownGenerations) {
  ModuleHistory history;
  EXPECT_FALSE(history.Find(1, 0x1000).has_value());
  EXPECT_TRUE(history.newest().empty());
  history.Add(5, ModuleMap({MakeModule(0x1000, "five")}));
  history.Add(9, ModuleMap({MakeModule(0x1000, "nine")}));
  EXPECT_EQ(PathOf(history, 7, 0x1000), "five");
  EXPECT_EQ(PathOf(history, 12, 0x1000), "nine");
  EXPECT_EQ(PathOf(history, 2, 0x1000), "five");
  EXPECT_EQ(history.Canonical(12), 12u) << "its map may still come";
  history.Add(3, ModuleMap({MakeModule(0x1000, "late")}));
  EXPECT_EQ(PathOf(history, 3, 0x1000), "five") << "generations rise";
}

TEST(ModuleHistory, KeepNewestForgetsTheRest) {
  ModuleHistory history;
  history.Add(1, ModuleMap({MakeModule(0x1000, "old"), MakeModule(0x3000, "gone")}));
  history.Add(2, ModuleMap({MakeModule(0x1000, "new")}));
  history.KeepNewest();
  ASSERT_EQ(history.modules().size(), 1u);
  EXPECT_EQ(PathOf(history, 1, 0x1000), "new");
  EXPECT_EQ(PathOf(history, 2, 0x1000), "new");
  EXPECT_EQ(PathOf(history, 1, 0x3000), "none");
}

TEST(ModuleHistory, BoundedUnderEndlessReloads) {
  ModuleHistory history;
  std::size_t memory_at_limit = 0;
  constexpr std::uint32_t kLimit = ModuleHistory::kMaxGenerations;
  for (std::uint32_t generation = 0; generation < 4 * kLimit; ++generation) {
    history.Add(generation,
                ModuleMap({MakeModule(0x1000, "main"),
                           MakeModule(0x5000, "plugin-" + std::to_string(generation % 1000))}));
    if (generation == kLimit) memory_at_limit = history.memory_bytes();
  }
  EXPECT_LE(history.modules().size(), kLimit + 1);
  EXPECT_LE(history.memory_bytes(), 2 * memory_at_limit);
  EXPECT_EQ(PathOf(history, 4 * kLimit - 1, 0x5000), "plugin-23");
  EXPECT_EQ(PathOf(history, 4 * kLimit - 100, 0x5000), "plugin-924");
  EXPECT_EQ(PathOf(history, 0, 0x1000), "main");
}

TEST(ModuleHistory, MergedListsKeepWhatDoesNotOverlap) {
  ModuleHistory history;
  history.Add(0, ModuleMap({MakeModule(0x1000, "early"), MakeModule(0x8000, "unloaded")}));
  for (std::uint32_t generation = 1; generation <= ModuleHistory::kMaxGenerations; ++generation) {
    history.Add(generation, ModuleMap({MakeModule(0x1800, "main" + std::to_string(generation))}));
  }
  EXPECT_EQ(PathOf(history, 0, 0x8000), "unloaded");
  EXPECT_EQ(PathOf(history, 0, 0x1800), "main1") << "the newer wins where they overlap";
}

}  // namespace
}  // namespace strobe
