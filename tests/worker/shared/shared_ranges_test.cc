#include "strobe/worker/shared/shared_ranges.h"

#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <string>
#include <thread>

#include "../code_at.h"
#include "support/until_seen.h"

namespace strobe::internal {
namespace {

using testing::CodeAt;

TEST(SharedRanges, ComeBackUntilTheyAreRemoved) {
  const auto ranges = std::make_unique<SharedRanges>();
  const std::byte frames[3]{};
  const std::string longest(GeneratedCode::kMaxNameBytes + 10, 'n');
  ASSERT_TRUE(
      ranges->Add({.name = "first", .start = CodeAt(0x1000), .bytes = 16, .eh_frame = frames}));
  ASSERT_TRUE(ranges->Add({.name = longest, .start = CodeAt(0x2000), .bytes = 32}));
  std::vector<SharedRanges::Range> found = ranges->Copy();
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].name, "first");
  EXPECT_EQ(found[0].start, 0x1000U);
  EXPECT_EQ(found[0].bytes, 16U);
  EXPECT_EQ(found[0].eh_frame_address, reinterpret_cast<Address>(frames));
  EXPECT_EQ(found[0].eh_frame_bytes, 3U);
  EXPECT_EQ(found[1].name, longest.substr(0, GeneratedCode::kMaxNameBytes));
  EXPECT_NE(found[0].number, found[1].number);
  const std::uint64_t version = ranges->version();
  ranges->Remove(0x1000);
  ranges->Remove(0x3000);
  EXPECT_EQ(ranges->version(), version + 1);
  found = ranges->Copy();
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].start, 0x2000U);
}

TEST(SharedRanges, HaveALimit) {
  const auto ranges = std::make_unique<SharedRanges>();
  for (std::size_t i = 1; i <= SharedRanges::kMaxRanges; ++i)
    ASSERT_TRUE(ranges->Add({.name = "code", .start = CodeAt(i * 16), .bytes = 16}));
  EXPECT_FALSE(ranges->Add({.name = "code", .start = CodeAt(0x1000000), .bytes = 16}));
  ranges->Remove(16);
  EXPECT_TRUE(ranges->Add({.name = "code", .start = CodeAt(0x1000000), .bytes = 16}));
}

// A range that is read is one that was registered, never a mixture of two.
TEST(SharedRanges, AreReadWhileTheyChange) {
  const auto ranges = std::make_unique<SharedRanges>();
  std::atomic<bool> stop{false};
  std::thread changes([&] {
    for (Address i = 1; !stop; ++i) {
      const std::string name(1 + i % 200, static_cast<char>('a' + i % 26));
      ranges->Add({.name = name, .start = CodeAt(i * 256), .bytes = name.size()});
      ranges->Remove(i * 256);
    }
  });
  std::size_t read = 0;
  testing::WorkUntil([&] { return read >= 2000; },
                     [&] {
                       for (const SharedRanges::Range& range : ranges->Copy()) {
                         const Address i = range.start / 256;
                         EXPECT_EQ(range.name,
                                   std::string(1 + i % 200, static_cast<char>('a' + i % 26)));
                         EXPECT_EQ(range.bytes, range.name.size());
                         ++read;
                       }
                     });
  stop = true;
  changes.join();
}

}  // namespace
}  // namespace strobe::internal
