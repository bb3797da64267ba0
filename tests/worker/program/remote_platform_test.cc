#include "strobe/worker/program/remote_platform.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "strobe/aggregate/label_table.h"
#include "strobe/aggregate/slow_spans.h"
#include "strobe/runtime/channels/channel_arena.h"
#include "strobe/worker/remote_profiler.h"

namespace strobe::internal {
namespace {

using Arena = ChannelArena<RemoteTraits>;
// As large as the default options want it.
constexpr std::uint32_t kChunks = 512;
constexpr std::uint64_t kDefaultChunkBytes = Arena::ChunkBytes(32 * 1024);

void CheckChunks() {
  const std::uint64_t bytes = kDefaultChunkBytes;
  ASSERT_TRUE(RemotePlatform::Open(kChunks, Arena::kChannelsPerChunk, bytes).ok());
  ASSERT_TRUE(RemotePlatform::Open(kChunks, Arena::kChannelsPerChunk, bytes).ok());
  EXPECT_EQ(RemotePlatform::Open(kChunks, Arena::kChannelsPerChunk, 2 * bytes).code(),
            absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(RemotePlatform::Open(kChunks + 1, Arena::kChannelsPerChunk, bytes).code(),
            absl::StatusCode::kFailedPrecondition);
  const SharedArea& area = RemotePlatform::Area();
  EXPECT_TRUE(RemotePlatform::MapMemory(bytes + 1).bytes.empty());
  const std::span<std::byte> first = RemotePlatform::MapMemory(bytes).bytes;
  EXPECT_EQ(first.size(), bytes);
  EXPECT_EQ(RemotePlatform::MapMemory(bytes).bytes.data(), first.data() + bytes);
  EXPECT_EQ(&RemotePlatform::SharedCode(), &area.header().codes[0]);
  // Captures take their stacks along: nothing is known of any code.
  const UnwindModules* const tables = RemotePlatform::SharedCode().tables.load();
  ASSERT_NE(tables, nullptr);
  EXPECT_TRUE(tables->entries().empty() && !tables->is_complete());
}

// A worker that the program has lost, because it has closed its files, lives on for a while. What
// it shows captures then may lie in memory that the program has unmapped.
void CheckCodes() {
  ASSERT_TRUE(RemotePlatform::Open(kChunks, Arena::kChannelsPerChunk, kDefaultChunkBytes).ok());
  auto& codes = RemotePlatform::Area().header().codes;
  std::size_t last = 0;
  for (std::size_t i = 0; i < 2 * codes.size(); ++i) {
    PublishedCode& of_last = RemotePlatform::SharedCode();
    EXPECT_EQ(&of_last, &codes[last]);
    const std::uint32_t worker = RemotePlatform::BeginWorker();
    EXPECT_TRUE(RemotePlatform::Area().IsOf(worker));
    last = worker % codes.size();
    const UnwindModules late({}, /*is_complete=*/true);
    of_last.generation = 7;
    of_last.tables = &late;
    EXPECT_EQ(&RemotePlatform::SharedCode(), &codes[last]);
    EXPECT_EQ(RemotePlatform::SharedCode().generation, 0U);
    EXPECT_FALSE(RemotePlatform::SharedCode().tables.load()->is_complete());
  }
}

LabelSet SetOf(const std::string& text) { return LabelSet(std::vector<Label>{{"set", text}}); }

// A fork's child gives the same numbers to other sets.
TEST(RemotePlatform, SharesTheLabelsOfThisProcess) {
  const std::uint64_t before = ProcessLabels().Intern({{"set", "before"}});
  ASSERT_TRUE(RemotePlatform::Open(kChunks, Arena::kChannelsPerChunk, kDefaultChunkBytes).ok());
  const SharedContexts& contexts = RemotePlatform::Area().Contexts();
  const pid_t child = fork();
  if (child == 0) {
    ProcessLabels().Intern({{"set", "of the child"}});
    NoteSlowSpan(7);
    _exit(0);
  }
  ASSERT_GT(child, 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(contexts.slow_spans.Sorted().empty());
  const std::uint64_t after = ProcessLabels().Intern({{"set", "after"}});
  NoteSlowSpan(8);
  EXPECT_EQ(contexts.labels.Find(before), SetOf("before"));
  EXPECT_EQ(contexts.labels.Find(after), SetOf("after"));
  EXPECT_EQ(contexts.slow_spans.Sorted(), std::vector<SpanNumber>{8});
}

// A process has one area, which the tests of whole sessions use. A fork's child has its own.
TEST(RemotePlatform, GivesOutTheChunksOfItsArea) {
  const auto child = [] {
    CheckChunks();
    CheckCodes();
    std::exit(::testing::Test::HasFailure() ? 1 : 0);
  };
  EXPECT_EXIT(child(), ::testing::ExitedWithCode(0), "");
}

}  // namespace
}  // namespace strobe::internal
