#include "strobe/worker/serve/serve_program.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include "../next_descriptor.h"
#include "strobe/default_traits.h"

namespace strobe::internal {
namespace {

TEST(HelloOptions, EachFieldIsSetOrRefused) {
  ProfilerOptions options;
  ASSERT_TRUE(SetOptions("sampling.cpu_frequency_hz=250\nexporter.directory=/a=b\n", options).ok());
  EXPECT_EQ(*options.sampling.cpu_frequency_hz, 250);
  EXPECT_EQ(*options.exporter.directory, "/a=b");
  for (const char* wrong : {"sampling.cpu_frequency_hz=x", "no.such=1", "sampling.max_frames",
                            "sampling.max_frames=-1\n", "\n"})
    EXPECT_FALSE(SetOptions(wrong, options).ok()) << wrong;
}

// A worker that was built with other parts, or from another version, would read the channels wrong.
TEST(ReadHello, AProgramWithOtherPartsIsRefused) {
  using Arena = ChannelArena<WorkerTraitsOf<DefaultTraits>>;
  const ProfilerOptions options;
  const auto ring_bytes = static_cast<std::size_t>(*options.threads.ring_bytes);
  const Hello good{.process_id = static_cast<std::uint64_t>(getpid()),
                   .channel_bytes = sizeof(Arena::Channel),
                   .cells = DefaultTraits::Providers::kCellCount,
                   .chunk_bytes = Arena::ChunkBytes(ring_bytes)};
  static constexpr auto kTypes = DefaultTraits::Providers::AllValueTypes();
  const std::string types = JoinValueTypes(kTypes);
  const auto read = [&](const Hello& head, bool has_area = true, bool has_more = false,
                        const std::string& others = {}) {
    const absl::StatusOr<SharedArea> area =
        SharedArea::Create(1, Arena::kChannelsPerChunk, Arena::ChunkBytes(ring_bytes));
    return ReadHello<DefaultTraits>(
               {.kind = MessageKind::kHello,
                .text = JoinHello({.head = head,
                                   .program = "p",
                                   .value_types = others.empty() ? types : others,
                                   .options = ""}),
                .descriptors = {has_area ? dup(area->descriptor()) : -1,
                                has_more ? dup(area->descriptor()) : -1}})
        .status();
  };
  EXPECT_TRUE(read(good).ok()) << read(good);
  EXPECT_FALSE(read(good, /*has_area=*/false).ok());
  EXPECT_FALSE(read(good, /*has_area=*/true, /*has_more=*/true).ok());
  EXPECT_EQ(read(good, true, false, types + "events count\n").code(),
            absl::StatusCode::kInvalidArgument);
  for (std::uint32_t Hello::*field : {&Hello::channel_bytes, &Hello::cells}) {
    Hello other = good;
    ++(other.*field);
    EXPECT_EQ(read(other).code(), absl::StatusCode::kInvalidArgument);
  }
  Hello other = good;
  other.signal = kMaxSignal + 1;
  EXPECT_EQ(read(other).code(), absl::StatusCode::kInvalidArgument);
  other = good;
  other.chunk_bytes += 4096;
  EXPECT_EQ(read(other).code(), absl::StatusCode::kInvalidArgument);
}

// A peer that is refused leaves nothing behind in a worker that serves others.
TEST(ReadHello, ARefusalClosesTheDescriptors) {
  const int next_before = testing::NextDescriptor();
  const std::string text =
      JoinHello({.head = {}, .program = "p", .value_types = "", .options = ""});
  for (const MessageKind kind : {MessageKind::kHello, MessageKind::kFlush})
    EXPECT_FALSE(ReadHello<DefaultTraits>({.kind = kind,
                                           .text = text,
                                           .descriptors = {memfd_create("one", MFD_CLOEXEC),
                                                           memfd_create("two", MFD_CLOEXEC)}})
                     .ok());
  EXPECT_EQ(testing::NextDescriptor(), next_before);
}

}  // namespace
}  // namespace strobe::internal
