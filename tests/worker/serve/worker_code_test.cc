#include "strobe/worker/serve/worker_code.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <vector>

#include "../code_at.h"

namespace strobe::internal {
namespace {

using testing::CodeAt;

std::vector<Module> ModulesIn(const CodeRegistry& registry) {
  ModuleMap map;
  registry.Join(map);
  return map.modules();
}

TEST(WorkerCode, TheRegistryFollowsTheRanges) {
  const auto ranges = std::make_unique<SharedRanges>();
  CodeRegistry registry;
  WorkerCode code;
  ASSERT_TRUE(ranges->Add({.name = "old", .start = CodeAt(0x1000), .bytes = 16}));
  ASSERT_TRUE(ranges->Add({.name = "stays", .start = CodeAt(0x2000), .bytes = 16}));
  code.Update(*ranges, registry);
  ASSERT_EQ(ModulesIn(registry).size(), 2U);
  const std::uint64_t number = ModulesIn(registry)[1].code_number;
  ranges->Remove(0x1000);
  ASSERT_TRUE(ranges->Add({.name = "new", .start = CodeAt(0x1000), .bytes = 8}));
  code.Update(*ranges, registry);
  const std::vector<Module> modules = ModulesIn(registry);
  ASSERT_EQ(modules.size(), 2U);
  EXPECT_EQ(modules[0].path, "new");
  EXPECT_EQ(modules[0].limit, 0x1008U);
  EXPECT_EQ(modules[1].code_number, number) << "the same registration";
}

// The program may write anything at any time.
TEST(WorkerCode, AnyBytesAreRead) {
  const auto ranges = std::make_unique<SharedRanges>();
  CodeRegistry registry;
  WorkerCode code;
  std::mt19937_64 random(4711);
  auto* const bytes = reinterpret_cast<char*>(ranges.get());
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i + sizeof(std::uint64_t) <= sizeof(SharedRanges); i += 8) {
      const std::uint64_t word = random() >> (random() % 64);
      std::memcpy(bytes + i, &word, sizeof(word));
    }
    code.Update(*ranges, registry);
    EXPECT_FALSE(ModulesIn(registry).empty()) << "some ranges are possible ones";
  }
}

}  // namespace
}  // namespace strobe::internal
