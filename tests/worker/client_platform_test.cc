#include "strobe/worker/client_platform.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "strobe/runtime/slot_arena.h"
#include "strobe/worker/worker_profiler.h"

namespace strobe::internal {
namespace {

constexpr std::uint32_t kSlots = 64;

// As large as the default options want it.
void CheckChunks() {
  using Arena = SlotArena<WorkerTraits>;
  constexpr std::uint32_t kChunks = 512;
  const std::uint64_t bytes = Arena::ChunkBytes(32 * 1024);
  ASSERT_TRUE(ClientPlatform::Open(kChunks, kSlots, bytes).ok());
  ASSERT_TRUE(ClientPlatform::Open(kChunks, kSlots, bytes).ok());
  EXPECT_EQ(ClientPlatform::Open(kChunks, kSlots, 2 * bytes).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(ClientPlatform::Open(kChunks + 1, kSlots, bytes).code(),
            absl::StatusCode::kFailedPrecondition);
  const SharedArea& area = ClientPlatform::Area();
  EXPECT_TRUE(ClientPlatform::MapMemory(bytes + 1).bytes.empty());
  const std::span<std::byte> first = ClientPlatform::MapMemory(bytes).bytes;
  EXPECT_EQ(first.size(), bytes);
  EXPECT_EQ(ClientPlatform::MapMemory(bytes).bytes.data(), first.data() + bytes);
  EXPECT_EQ(&ClientPlatform::SharedCode(), &area.header().code);
  // Captures take their stacks along: nothing is known of any code.
  const UnwindModules* const tables = ClientPlatform::SharedCode().tables.load();
  ASSERT_NE(tables, nullptr);
  EXPECT_TRUE(tables->entries().empty() && !tables->is_complete());
}

// A process has one area, which the tests of whole sessions use. A fork's child has its own.
TEST(ClientPlatform, GivesOutTheChunksOfItsArea) {
  const auto child = [] {
    CheckChunks();
    std::exit(::testing::Test::HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace strobe::internal
