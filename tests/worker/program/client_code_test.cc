#include "strobe/worker/program/client_code.h"

#include <gtest/gtest.h>

#include <vector>

#include "../code_at.h"
#include "strobe/runtime/channels/slot_arena.h"
#include "strobe/worker/program/client_platform.h"
#include "strobe/worker/worker_profiler.h"

namespace strobe::internal {
namespace {

using testing::CodeAt;

TEST(ClientCode, IsInTheAreaUntilItIsRemoved) {
  // The process has one area: as the default options want it.
  using Arena = SlotArena<WorkerTraits>;
  ASSERT_TRUE(ClientPlatform::Open(512, Arena::kSlotsPerChunk, Arena::ChunkBytes(32 * 1024)).ok());
  const SharedRanges& ranges = ClientPlatform::Area().Ranges();
  ClientCode code;
  ASSERT_TRUE(code.Add({.name = "jit", .start = CodeAt(0x1000), .bytes = 16}).ok());
  ASSERT_EQ(ranges.Copy().size(), 1U);
  EXPECT_EQ(ranges.Copy()[0].name, "jit");
  EXPECT_FALSE(code.Add({.name = "over it", .start = CodeAt(0x1008), .bytes = 16}).ok());
  EXPECT_EQ(ranges.Copy().size(), 1U) << "what is refused is not told";
  code.Remove(0x1000);
  EXPECT_EQ(ranges.Copy().size(), 0U);
}

}  // namespace
}  // namespace strobe::internal
