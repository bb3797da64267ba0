#include "../../src/unwind/debug_frame.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <iterator>

#include "eh_frame_builder.h"

namespace strobe::testing {
namespace {

using internal::MakeEhFrame;

constexpr Address kBias = 0x10000000;

// Entries of .debug_frame, each behind its length.
Bytes DebugEntry(const Bytes& body) {
  return Join({Fixed(static_cast<std::uint32_t>(body.size())), body});
}
Bytes DebugCie() {
  return DebugEntry(Join({Fixed(~std::uint32_t{0}),
                          {1, 0},  // the version; no augmentation
                          Uleb(1),
                          Sleb(-8),
                          {kRip},
                          DefCfa(kRsp, 8),
                          Offset(kRip, 1)}));
}
Bytes DebugFde(std::uint32_t cie, Address begin, const Bytes& program = {}) {
  return DebugEntry(Join({Fixed(cie), Fixed(begin), Fixed(std::uint64_t{0x40}), program}));
}

UnwindRule RuleOf(const Bytes& eh_frame, Address address) {
  const CompiledTable table(CompileCfi({.architecture = Architecture::kX86_64,
                                        .eh_frame = eh_frame,
                                        .eh_frame_address = EhFrameBuilder::kEhFrame,
                                        .text_start = kText + kBias,
                                        .text_limit = kTextLimit + kBias}));
  return table.At(static_cast<std::uint32_t>(address - kText - kBias));
}

TEST(MakeEhFrameTest, AReaderOfEhFrameUnderstandsIt) {
  Bytes bytes = Join({DebugCie(), DebugFde(0, kText), DebugCie()});
  bytes = Join({bytes, DebugFde(static_cast<std::uint32_t>(bytes.size() - DebugCie().size()),
                                kText + 0x40, DefCfaOffset(16))});
  const std::size_t size = bytes.size();
  MakeEhFrame(bytes, kBias);
  EXPECT_EQ(bytes.size(), size);
  EXPECT_EQ(RuleOf(bytes, kText + kBias), FromSp(1));
  EXPECT_EQ(RuleOf(bytes, kText + kBias + 0x40), FromSp(2));
  EXPECT_EQ(RuleOf(bytes, kText + kBias + 0x80), UnwindRule::Unknown());
}

TEST(MakeEhFrameTest, AFunctionThatTheLinkerDroppedStaysSo) {
  Bytes bytes = Join({DebugCie(), DebugFde(0, 0)});
  MakeEhFrame(bytes, kText + kBias);
  EXPECT_EQ(RuleOf(bytes, kText + kBias), UnwindRule::Unknown());
}

TEST(MakeEhFrameTest, EndsWhereItCannotBeUnderstood) {
  const Bytes good = Join({DebugCie(), DebugFde(0, kText)});
  const auto first = static_cast<std::uint32_t>(DebugCie().size());
  const Bytes bad[] = {
      DebugFde(first, kText),                                    // its CIE is an FDE
      DebugFde(4, kText),                                        // in the middle of an entry
      DebugFde(static_cast<std::uint32_t>(good.size()), kText),  // itself
      Fixed(~std::uint32_t{0}),                                  // the 64-bit format
      Join({Fixed(~std::uint32_t{0}), Bytes(40)}),
      Join({Fixed(std::uint32_t{8}), Bytes(40)}),     // too short for an entry
      Join({Fixed(std::uint32_t{1000}), Bytes(40)}),  // longer than the section
      Bytes(3),
  };
  for (std::size_t i = 0; i < std::size(bad); ++i) {
    Bytes bytes = Join({good, bad[i], DebugFde(0, kText + 0x40)});
    MakeEhFrame(bytes, kBias);
    EXPECT_EQ(bytes.size(), good.size()) << i;
    EXPECT_EQ(RuleOf(bytes, kText + kBias), FromSp(1)) << i;
  }
}

TEST(MakeEhFrameTest, EveryBeginningIsUnderstoodUpToItsLastWholeEntry) {
  const Bytes whole = Join({DebugCie(), DebugFde(0, kText)});
  for (std::size_t size = 0; size < whole.size(); ++size) {
    Bytes bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    MakeEhFrame(bytes, kBias);
    EXPECT_EQ(bytes.size(), size < DebugCie().size() ? 0 : DebugCie().size()) << size;
  }
}

}  // namespace
}  // namespace strobe::testing
