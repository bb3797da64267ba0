#include "../../src/unwind/fde_index.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <utility>
#include <vector>

#include "eh_frame_builder.h"
#include "strobe/testing/fakes/fake_memory.h"

namespace strobe::testing {
namespace {

using internal::CfiRows;
using internal::FdeIndex;

constexpr Address kHeader = EhFrameBuilder::kEhFrame - 0x1000;

// Three functions of 0x40 bytes, with a CFA of 1, 2 and 3 words.
class FdeIndexTest : public ::testing::Test {
 protected:
  FdeIndexTest() {
    module_.start = kText;
    module_.limit = kTextLimit;
    const std::size_t cie = builder_.Cie();
    for (int i = 0; i < 3; ++i) {
      fdes_.push_back(EhFrameBuilder::kEhFrame + builder_.bytes.size());
      builder_.Fde(cie, kText + i * 0x40, 0x40, DefCfaOffset(8 * (i + 1)));
    }
    builder_.Terminate();
    memory_.Map(EhFrameBuilder::kEhFrame, builder_.bytes);
  }

  static Bytes Entry(Address function, Address fde) {
    return Join({Fixed(static_cast<std::int32_t>(function - kHeader)),
                 Fixed(static_cast<std::int32_t>(fde - kHeader))});
  }
  // What a linker writes: the address of .eh_frame, and the functions in order.
  static Bytes HeaderOf(const std::vector<Bytes>& entries) {
    Bytes header = Join({{1, 0x1B, 0x03, 0x3B},
                         Fixed(std::int32_t{0x1000 - 4}),
                         Fixed(static_cast<std::uint32_t>(entries.size()))});
    for (const Bytes& entry : entries) header = Join({header, entry});
    return header;
  }
  std::vector<Bytes> Entries() {
    std::vector<Bytes> entries;
    for (std::size_t i = 0; i < 3; ++i) entries.push_back(Entry(kText + i * 0x40, fdes_[i]));
    return entries;
  }
  FdeIndex Index() { return {Architecture::kX86_64, module_, read_}; }
  CompiledTable Rows(FdeIndex& index, Address first = kText, Address limit = kTextLimit) {
    CfiRows rows(Architecture::kX86_64, module_.start, module_.limit, first, limit);
    index.AddRows(first, limit, rows);
    return CompiledTable(rows.Take());
  }
  void ExpectAllThree(FdeIndex& index) {
    const CompiledTable table = Rows(index);
    EXPECT_EQ(table.At(0), FromSp(1));
    EXPECT_EQ(table.At(0x40), FromSp(2));
    EXPECT_EQ(table.At(0x80), FromSp(3));
    EXPECT_EQ(table.At(0xC0), UnwindRule::Unknown());
    EXPECT_EQ(table.statistics.broken_entries, 0u);
  }

  Module module_;
  EhFrameBuilder builder_;
  std::vector<Address> fdes_;
  FakeMemory memory_;
  const AnyMemoryReader read_ = std::ref(memory_);
};

TEST_F(FdeIndexTest, IsEmptyAtFirst) {
  FdeIndex index = Index();
  EXPECT_TRUE(index.empty());
  EXPECT_FALSE(index.has_failed());
  EXPECT_TRUE(Rows(index).rows.empty());
  EXPECT_TRUE(memory_.reads().empty());
}

TEST_F(FdeIndexTest, TakesTheLinkersIndex) {
  memory_.Map(kHeader, HeaderOf(Entries()));
  FdeIndex index = Index();
  ASSERT_TRUE(index.ReadSorted(kHeader));
  EXPECT_FALSE(index.empty());
  EXPECT_GE(index.memory_bytes(), 24u);
  ExpectAllThree(index);
}

TEST_F(FdeIndexTest, ALinkersIndexNeedNotBeSorted) {
  std::vector<Bytes> entries = Entries();
  std::swap(entries[0], entries[2]);
  entries.push_back(Entry(kTextLimit, fdes_[0]));
  entries.push_back(Entry(kText - 1, fdes_[0]));
  memory_.Map(kHeader, HeaderOf(entries));
  FdeIndex index = Index();
  ASSERT_TRUE(index.ReadSorted(kHeader));
  ExpectAllThree(index);
}

TEST_F(FdeIndexTest, RefusesLinkersIndexesThatItDoesNotKnow) {
  const Bytes good = HeaderOf(Entries());
  for (std::size_t i = 0; i < 4; ++i) {
    Bytes bad = good;
    bad[i] = i == 2 ? 0xFF : 0x5D;  // 0xFF: there is no count
    memory_.Map(kHeader, bad);
    FdeIndex index = Index();
    EXPECT_FALSE(index.ReadSorted(kHeader)) << i;
    EXPECT_TRUE(index.empty());
  }
  for (const std::uint32_t count : {0u, 4u, 0xFFFFFFFFu}) {
    memory_.Map(kHeader, Join({Bytes(good.begin(), good.begin() + 8), Fixed(count),
                               Bytes(good.begin() + 12, good.end())}));
    FdeIndex index = Index();
    EXPECT_FALSE(index.ReadSorted(kHeader)) << count;
    EXPECT_TRUE(index.empty()) << "no part of it is kept";
  }
}

TEST_F(FdeIndexTest, EveryBeginningOfALinkersIndexIsRefused) {
  const Bytes good = HeaderOf(Entries());
  for (std::size_t size = 0; size < good.size(); ++size) {
    memory_.Map(kHeader, Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)));
    FdeIndex index = Index();
    EXPECT_FALSE(index.ReadSorted(kHeader)) << size;
  }
}

TEST_F(FdeIndexTest, ScansAnEhFrameInMemory) {
  FdeIndex index = Index();
  index.Scan(EhFrameBuilder::kEhFrame, FdeIndex::kMaxEhFrameBytes);
  ExpectAllThree(index);
  EXPECT_FALSE(index.has_failed());
}

TEST_F(FdeIndexTest, ScansNoMoreThanItIsTold) {
  FdeIndex index = Index();
  index.Scan(EhFrameBuilder::kEhFrame, fdes_[2] - EhFrameBuilder::kEhFrame);
  const CompiledTable table = Rows(index);
  EXPECT_EQ(table.At(0x40), FromSp(2));
  EXPECT_EQ(table.At(0x80), UnwindRule::Unknown());
}

TEST_F(FdeIndexTest, KeepsAnEhFrameThatIsNotInMemory) {
  memory_.Unmap(EhFrameBuilder::kEhFrame);
  FdeIndex index = Index();
  index.Scan(builder_.bytes);
  ExpectAllThree(index);
  EXPECT_FALSE(index.has_failed());
  EXPECT_GE(index.memory_bytes(), builder_.bytes.size());
  FdeIndex none = Index();
  none.Scan(Bytes());
  EXPECT_TRUE(none.empty());
}

TEST_F(FdeIndexTest, SaysThatMemoryCouldNotBeRead) {
  memory_.Map(EhFrameBuilder::kEhFrame, Bytes(builder_.bytes.begin(), builder_.bytes.end() - 40));
  FdeIndex index = Index();
  index.Scan(EhFrameBuilder::kEhFrame, FdeIndex::kMaxEhFrameBytes);
  EXPECT_TRUE(index.has_failed());
  EXPECT_EQ(Rows(index).At(0), FromSp(1)) << "what lies before is known";
}

TEST_F(FdeIndexTest, AnIndexWhoseModuleIsUnloadedMeanwhileFails) {
  memory_.Map(kHeader, HeaderOf(Entries()));
  FdeIndex index = Index();
  ASSERT_TRUE(index.ReadSorted(kHeader));
  memory_.Unmap(EhFrameBuilder::kEhFrame);
  const CompiledTable table = Rows(index);
  EXPECT_EQ(table.At(0), UnwindRule::Unknown());
  EXPECT_EQ(table.statistics.broken_entries, 3u);
  EXPECT_TRUE(index.has_failed());
}

TEST_F(FdeIndexTest, EntriesThatAreNoFdesAreBroken) {
  std::vector<Bytes> entries = Entries();
  entries[1] = Entry(kText + 0x40, EhFrameBuilder::kEhFrame);  // a CIE
  entries[2] = Entry(kText + 0x80, fdes_[2] + 2);              // not at its start
  memory_.Map(kHeader, HeaderOf(entries));
  FdeIndex index = Index();
  ASSERT_TRUE(index.ReadSorted(kHeader));
  const CompiledTable table = Rows(index);
  EXPECT_EQ(table.At(0), FromSp(1));
  EXPECT_EQ(table.At(0x40), UnwindRule::Unknown());
  EXPECT_EQ(table.statistics.fdes, 1u);
  EXPECT_GE(table.statistics.broken_entries, 2u);
}

TEST_F(FdeIndexTest, ARangeHasTheFunctionThatReachesIntoIt) {
  memory_.Map(kHeader, HeaderOf(Entries()));
  FdeIndex index = Index();
  ASSERT_TRUE(index.ReadSorted(kHeader));
  const CompiledTable table = Rows(index, kText + 0x60, kText + 0x90);
  EXPECT_EQ(table.At(0), FromSp(2)) << "it begins before the range";
  EXPECT_EQ(table.At(0x20), FromSp(3));
  EXPECT_EQ(table.rows.back().offset, 0x30u);
  const CompiledTable behind = Rows(index, kText + 0x1000, kTextLimit);
  EXPECT_TRUE(behind.rows.empty());
}

TEST_F(FdeIndexTest, LeavesOutTheFunctionsOfAnother) {
  memory_.Map(kHeader, HeaderOf({Entries()[0], Entries()[2]}));
  FdeIndex known = Index();
  ASSERT_TRUE(known.ReadSorted(kHeader));
  FdeIndex index = Index();
  index.Scan(builder_.bytes);
  index.Remove(known);
  const CompiledTable table = Rows(index);
  EXPECT_EQ(table.At(0), UnwindRule::Unknown());
  EXPECT_EQ(table.At(0x40), FromSp(2));
  EXPECT_EQ(table.At(0x80), UnwindRule::Unknown());
  FdeIndex same = Index();
  same.Scan(builder_.bytes);
  index.Remove(same);
  EXPECT_TRUE(index.empty());
  EXPECT_EQ(index.memory_bytes(), 0u) << "no bytes are kept for nothing";
}

}  // namespace
}  // namespace strobe::testing
