#include "strobe/worker/program/remote_code.h"

#include <gtest/gtest.h>

#include <vector>

#include "../code_at.h"
#include "strobe/runtime/channels/channel_arena.h"
#include "strobe/worker/program/remote_platform.h"
#include "strobe/worker/remote_profiler.h"

namespace strobe::internal {
namespace {

using testing::CodeAt;

TEST(RemoteCode, IsInTheAreaUntilItIsRemoved) {
  // The process has one area: as the default options want it.
  using Arena = ChannelArena<RemoteTraits>;
  ASSERT_TRUE(
      RemotePlatform::Open(512, Arena::kChannelsPerChunk, Arena::ChunkBytes(32 * 1024)).ok());
  const SharedRanges& ranges = RemotePlatform::Area().Ranges();
  RemoteCode code;
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
