#include "strobe/unwind/text_ranges.h"

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

// Bytes that stand for code, and the module that maps them.
alignas(64) const std::uint8_t code[64] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12,
                                           13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24};
Address CodeAddress(std::size_t offset = 0) {
  return static_cast<Address>(reinterpret_cast<std::uintptr_t>(code)) + offset;
}
Module Mapped(Address start, Address limit) {
  Module module;
  module.start = start;
  module.limit = limit;
  return module;
}
Module CodeModule() { return Mapped(CodeAddress(), CodeAddress(sizeof(code))); }

TEST(TextRanges, KnowsNothingBeforeTheFirstMap) {
  const TextRanges ranges;
  EXPECT_TRUE(ranges.Find(CodeAddress(20)).after.empty());
}

TEST(TextRanges, ShowsTheBytesAroundAPc) {
  TextRanges ranges;
  ranges.Publish(ModuleMap({Mapped(0x1000, 0x2000), CodeModule()}));
  const CodeWindow window = ranges.Find(CodeAddress(20));
  ASSERT_EQ(window.before.size(), TextRanges::kWindowBytes);
  ASSERT_EQ(window.after.size(), TextRanges::kWindowBytes);
  EXPECT_EQ(window.before.back(), 19);
  EXPECT_EQ(window.after.front(), 20);
}

TEST(TextRanges, LooksIntoNoGeneratedCode) {
  Module generated = CodeModule();
  generated.kind = ModuleKind::kGeneratedCode;
  TextRanges ranges;
  ranges.Publish(ModuleMap({Mapped(0x1000, 0x2000), generated}));
  EXPECT_TRUE(ranges.Find(CodeAddress(20)).after.empty());
}

TEST(TextRanges, StaysWithinTheMapping) {
  TextRanges ranges;
  ranges.Publish(ModuleMap({CodeModule()}));
  EXPECT_TRUE(ranges.Find(CodeAddress()).before.empty());
  EXPECT_EQ(ranges.Find(CodeAddress()).after.size(), TextRanges::kWindowBytes);
  EXPECT_EQ(ranges.Find(CodeAddress(3)).before.size(), 3u);
  EXPECT_EQ(ranges.Find(CodeAddress(sizeof(code) - 1)).after.size(), 1u);
  for (const Address outside :
       {CodeAddress() - 1, CodeAddress(sizeof(code)), Address{0}, ~Address{0}}) {
    EXPECT_TRUE(ranges.Find(outside).before.empty());
    EXPECT_TRUE(ranges.Find(outside).after.empty());
  }
}

// What was mapped there when the table was made may have gone since, and something smaller come.
TEST(TextRanges, StaysWithinThePageOfThePc) {
  alignas(4096) static const std::uint8_t pages[2 * 4096] = {};
  const auto begin = static_cast<Address>(reinterpret_cast<std::uintptr_t>(pages));
  TextRanges ranges;
  ranges.Publish(ModuleMap({Mapped(begin, begin + sizeof(pages))}));
  EXPECT_EQ(ranges.Find(begin + 4096 - 4).after.size(), 4u);
  EXPECT_EQ(ranges.Find(begin + 4096 - 4).before.size(), TextRanges::kWindowBytes);
  EXPECT_EQ(ranges.Find(begin + 4096 + 3).before.size(), 3u);
  EXPECT_EQ(ranges.Find(begin + 4096 + 3).after.size(), TextRanges::kWindowBytes);
}

TEST(TextRanges, FindsItsModuleAmongManyAndForgetsThoseThatWent) {
  std::vector<Module> modules{CodeModule()};
  for (Address i = 1; i < 100; ++i) modules.push_back(Mapped(i * 0x1000, i * 0x1000 + 0x800));
  TextRanges ranges;
  ranges.Publish(ModuleMap(modules));
  EXPECT_EQ(ranges.Find(CodeAddress(20)).after.front(), 20);
  modules.erase(modules.begin());
  ranges.Publish(ModuleMap(modules));
  EXPECT_TRUE(ranges.Find(CodeAddress(20)).after.empty());
}

TEST(TextRanges, MappingsBeyondTheLimitAreUnknown) {
  std::vector<Module> modules;
  for (Address i = 1; i <= TextRanges::kMaxRanges; ++i)
    modules.push_back(Mapped(i * 16, i * 16 + 8));
  modules.push_back(CodeModule());
  TextRanges ranges;
  ranges.Publish(ModuleMap(modules));
  EXPECT_TRUE(ranges.Find(CodeAddress(20)).after.empty());
}

// While the collector publishes one map after the other, a reader sees a whole one or none.
TEST(TextRanges, AReaderThatMeetsTheWriterGoesWithout) {
  const ModuleMap with({CodeModule()});
  const ModuleMap without({Mapped(0x1000, 0x2000), Mapped(0x3000, 0x4000)});
  TextRanges ranges;
  std::atomic<bool> is_done{false};
  std::thread reader([&] {
    while (!is_done) {
      const CodeWindow window = ranges.Find(CodeAddress(20));
      if (window.after.empty()) continue;
      ASSERT_EQ(window.after.size(), TextRanges::kWindowBytes);
      ASSERT_EQ(window.after.front(), 20);
      ASSERT_TRUE(ranges.Find(0x5000).after.empty());
    }
  });
  for (int i = 0; i < 20000; ++i) ranges.Publish(i % 2 == 0 ? with : without);
  is_done = true;
  reader.join();
}

}  // namespace
}  // namespace strobe::internal
