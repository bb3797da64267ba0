#include "strobe/platform/capture_target.h"

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

void ExpectSame(const ChannelToken& one, const ChannelToken& other) {
  EXPECT_EQ(one.arena, other.arena);
  EXPECT_EQ(one.provider, other.provider);
  EXPECT_EQ(one.use, other.use);
  EXPECT_EQ(one.index, other.index);
}

TEST(ChannelToken, SurvivesTheSignalsPayload) {
  for (const ChannelToken token :
       {ChannelToken{},
        ChannelToken{.arena = kMaxArenas - 1, .provider = 7, .use = 0xFFFF, .index = 0x3FFFF},
        ChannelToken{.arena = 0x10, .provider = 4, .use = 1, .index = 0x20000},
        ChannelToken{.arena = 1, .provider = 2, .use = 0x8001, .index = 3}}) {
    ChannelToken unpacked;
    ASSERT_TRUE(ChannelToken::Unpack(token.Pack(), unpacked));
    ExpectSame(unpacked, token);
  }
}

TEST(ChannelToken, OtherPeoplesPayloadsAreNotOurs) {
  const std::uint64_t ours = ChannelToken{.arena = 1, .use = 2, .index = 3}.Pack();
  ChannelToken token{.arena = 9, .provider = 9, .use = 9, .index = 9};
  int local = 0;
  for (const std::uint64_t payload :
       {std::uint64_t{0}, std::uint64_t{1}, ~std::uint64_t{0}, ours ^ std::uint64_t{1} << 56,
        static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(&local))}) {
    EXPECT_FALSE(ChannelToken::Unpack(payload, token)) << std::hex << payload;
  }
  ExpectSame(token, {.arena = 9, .provider = 9, .use = 9, .index = 9});
}

TEST(CaptureEntry, EachArenaHasItsOwn) {
  for (std::size_t arena = 0; arena < kMaxArenas; ++arena) {
    EXPECT_EQ(CaptureEntryOf(arena).function.load(), nullptr) << "it was not opened";
    for (std::size_t other = 0; other < arena; ++other)
      EXPECT_NE(&CaptureEntryOf(arena), &CaptureEntryOf(other));
  }
}

}  // namespace
}  // namespace strobe::internal
