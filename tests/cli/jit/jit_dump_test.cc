#include "../../../src/cli/jit/jit_dump.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "../../../src/symbolize/images/byte_source.h"
#include "gtest/gtest.h"
#include "jit_dump_bytes.h"

namespace strobe::internal {
namespace {

constexpr std::uint64_t kAlways = ~std::uint64_t{0};

// What was at an address from one time to another; "nothing" if there never was anything.
std::string Found(const JitDump& dump, Address address, TimeSpan times) {
  return std::string(dump.Find(address, times).value_or("nothing"));
}
JitDump Dumped(const Bytes& bytes) {
  JitDump dump;
  dump.Read(SpanSource(AsBytes(bytes)));
  return dump;
}

TEST(JitDump, IsKnownByItsPath) {
  for (const char* path : {"/tmp/jit-42.dump", "jit-1.dump", "/a/b/jit-007.dump"})
    EXPECT_TRUE(JitDump::IsPath(path)) << path;
  for (const char* path : {"", "/tmp/jit-.dump", "/tmp/jit-4a.dump", "/tmp/jit-42.dump2",
                           "/tmp/xjit-42.dump", "/jit-42.dump/x", "/tmp/perf-42.map", "jit.dump"})
    EXPECT_FALSE(JitDump::IsPath(path)) << path;
}

TEST(JitDump, NamesTheCodeThatWasThereThen) {
  const JitDump dump =
      Dumped(Join({DumpHeader(), DumpLoad(10, 0x1000, 0x100, "first"),
                   DumpLoad(20, 0x1080, 0x100, "second"), DumpLoad(30, 0x5000, 0x10, "other")}));
  EXPECT_EQ(Found(dump, 0x1000, {15, 15}), "first");
  EXPECT_EQ(Found(dump, 0x1080, {10, 19}), "first");
  EXPECT_EQ(Found(dump, 0x1080, {20, 25}), "second");
  EXPECT_EQ(Found(dump, 0x1000, {20, 25}), "first");
  EXPECT_EQ(Found(dump, 0x117F, {40, kAlways}), "second");
  EXPECT_EQ(Found(dump, 0x1080, {15, 25}), "") << "two, and either may be the sample's";
  EXPECT_EQ(Found(dump, 0x1080, {5, 5}), "") << "nothing was there yet";
  for (const Address address : {0x0, 0xFFF, 0x1180, 0x4FFF, 0x5010})
    EXPECT_EQ(Found(dump, address, {50, 50}), "nothing") << address;
}

TEST(JitDump, NamesWhatWasAloneIfTheTimeIsNotKnown) {
  const Bytes records =
      Join({DumpLoad(10, 0x1000, 0x100, "first"), DumpLoad(20, 0x1080, 0x100, "second"),
            DumpLoad(30, 0x1000, 0x10, "first")});
  const JitDump dump = Dumped(Join({DumpHeader(), records}));
  EXPECT_EQ(Found(dump, 0x1000, {}), "first");
  EXPECT_EQ(Found(dump, 0x1080, {}), "");
  EXPECT_EQ(Found(dump, 0x1100, {}), "second");
  // The times are those of a counter.
  const JitDump counted = Dumped(Join({DumpHeader(1), records}));
  EXPECT_EQ(Found(counted, 0x1000, {1000, 1000}), "first");
  EXPECT_EQ(Found(counted, 0x1080, {1000, 1000}), "");
}

TEST(JitDump, FollowsCodeThatMoves) {
  const JitDump dump =
      Dumped(Join({DumpHeader(), DumpLoad(10, 0x1000, 0x100, "code"),
                   DumpMove(20, 0x1000, 0x2000, 0x100), DumpMove(25, 0x7000, 0x8000, 0x100)}));
  EXPECT_EQ(Found(dump, 0x1010, {15, 15}), "code");
  EXPECT_EQ(Found(dump, 0x1010, {21, 21}), "");
  EXPECT_EQ(Found(dump, 0x2010, {21, 21}), "code");
  EXPECT_EQ(Found(dump, 0x8010, {30, 30}), "nothing");
}

TEST(JitDump, SkipsOtherRecords) {
  const JitDump dump = Dumped(
      Join({DumpHeader(), DumpRecord(2, 5, Bytes(100, 0xFF)), DumpRecord(4, 6, Bytes(3, 0xFF)),
            DumpRecord(77, 7, {}), DumpLoad(10, 0x1000, 0x100, "code"), DumpRecord(3, 8, {})}));
  EXPECT_EQ(Found(dump, 0x1000, {11, 11}), "code");
}

TEST(JitDump, IsReadAsItGrows) {
  const Bytes whole = Join(
      {DumpHeader(), DumpLoad(10, 0x1000, 0x100, "first"), DumpLoad(20, 0x2000, 0x100, "second")});
  JitDump dump;
  for (std::size_t bytes = 0; bytes <= whole.size(); ++bytes)
    dump.Read(SpanSource(AsBytes(whole).first(bytes)));
  EXPECT_EQ(Found(dump, 0x1000, {11, 11}), "first");
  EXPECT_EQ(Found(dump, 0x2000, {21, 21}), "second");
}

TEST(JitDump, EndsWhereItIsBroken) {
  const Bytes good = DumpLoad(10, 0x1000, 0x100, "good");
  const Bytes later = DumpLoad(10, 0x2000, 0x100, "later");
  for (const Bytes& broken :
       {DumpRecord(0, 10, {}), DumpRecord(0, 10, Bytes(39)), DumpLoad(10, 0x3000, 0, "empty"),
        DumpLoad(10, ~std::uint64_t{0} - 5, 100, "around"), DumpLoad(10, 0x3000, 0x10, "")}) {
    const JitDump dump = Dumped(Join({DumpHeader(), good, broken, later}));
    EXPECT_EQ(Found(dump, 0x2000, {11, 11}), "later");
    EXPECT_EQ(Found(dump, 0x3000, {11, 11}), "nothing");
  }
  for (const std::uint32_t size : {0U, 15U, 0xFFFFFFFFU}) {
    const Bytes broken = Join({HalfWord(0), HalfWord(size), Word(10)});
    const JitDump dump = Dumped(Join({DumpHeader(), good, broken, later}));
    EXPECT_EQ(Found(dump, 0x1000, {11, 11}), "good");
    EXPECT_EQ(Found(dump, 0x2000, {11, 11}), "nothing");
  }
  Bytes swapped = DumpHeader();
  std::ranges::reverse(swapped);
  for (const Bytes& header : {Bytes(40), Bytes(), swapped})
    EXPECT_EQ(Found(Dumped(Join({header, good})), 0x1000, {11, 11}), "nothing");
}

TEST(JitDump, HasLimits) {
  const std::string name(3 * JitDump::kMaxNameBytes, 'n');
  const JitDump dump = Dumped(
      Join({DumpHeader(), DumpLoad(10, 0x1000, 0x100, name), DumpLoad(20, 0x2000, 0x100, "code")}));
  EXPECT_EQ(Found(dump, 0x1000, {11, 11}), name.substr(0, JitDump::kMaxNameBytes));
  EXPECT_EQ(Found(dump, 0x2000, {21, 21}), "code");
}

}  // namespace
}  // namespace strobe::internal
