#include "strobe/unwind/known_code.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "eh_frame_builder.h"

namespace strobe::testing {
namespace {

constexpr std::uint32_t kTrampolineOffset = 0x240;

// Code of nothing but nops, with a trampoline at each of `offsets`.
Bytes CodeWith(const std::vector<std::uint32_t>& offsets) {
  Bytes code;
  while (code.size() < 0x400) code = Join({code, Fixed(std::uint32_t{0xD503201F})});
  for (const std::uint32_t offset : offsets) {
    const Bytes trampoline = Join({Fixed(std::uint32_t{0xD2801168}),
                                   Fixed(std::uint32_t{0xD4000001})});  // mov x8, #139; svc #0
    std::copy(trampoline.begin(), trampoline.end(), code.begin() + offset);
  }
  return code;
}

TEST(AddAarch64SignalTrampolines, TakesThePlaceOfWhatOlderKernelsSayOfIt) {
  EhFrameBuilder builder;
  const std::size_t cie = builder.Cie(Aarch64Cie());
  builder.Fde(cie, kText + 0x200, 0x100, DefCfa(kX29, 0));
  CompiledCfi compiled = builder.Compile(Architecture::kAarch64);
  AddAarch64SignalTrampolines(CodeWith({kTrampolineOffset}), compiled);
  const CompiledTable table(compiled);
  for (const std::uint32_t at : {kTrampolineOffset - 1, kTrampolineOffset, kTrampolineOffset + 4}) {
    EXPECT_EQ(table.SpecialAt(at), Aarch64SignalFrame()) << at;
  }
  EXPECT_EQ(table.At(0x1FF), UnwindRule::Unknown());
  EXPECT_EQ(table.At(kTrampolineOffset - 5), FromFp(0, 0));
  EXPECT_EQ(table.At(kTrampolineOffset + 8), FromFp(0, 0));
  EXPECT_EQ(table.At(0x300), UnwindRule::Unknown());
}

TEST(AddAarch64SignalTrampolines, IsFoundWithoutAnyFrameInformation) {
  CompiledCfi compiled;
  compiled.specials.emplace_back();
  AddAarch64SignalTrampolines(CodeWith({4, kTrampolineOffset}), compiled);
  const CompiledTable table(compiled);
  for (const std::uint32_t at : {3u, 8u, kTrampolineOffset - 1, kTrampolineOffset + 7})
    EXPECT_EQ(table.SpecialAt(at), Aarch64SignalFrame()) << at;
  for (const std::uint32_t at : {12u, kTrampolineOffset - 5, kTrampolineOffset + 8})
    EXPECT_EQ(table.At(at), UnwindRule::Unknown()) << at;
}

TEST(AddAarch64SignalTrampolines, CodeWithoutOneStaysAsItIs) {
  EhFrameBuilder builder;
  builder.Fde(builder.Cie(Aarch64Cie()), kText, 0x100, {});
  CompiledCfi compiled = builder.Compile(Architecture::kAarch64);
  const std::vector<UnwindRow> rows = compiled.rows;
  const std::size_t specials = compiled.specials.size();
  AddAarch64SignalTrampolines(CodeWith({}), compiled);
  AddAarch64SignalTrampolines({}, compiled);
  EXPECT_EQ(compiled.rows, rows);
  EXPECT_EQ(compiled.specials.size(), specials);
}

const Bytes kFinish = {0x48, 0x31, 0xFF, 0xE8, 1, 2, 3, 4, 0xF4};  // xor rdi, rdi; call; hlt
const Bytes kGoexit = {0x90, 0xE8, 1, 2, 3, 4, 0x90, 0xCC};        // nop; call; nop; int3
const Bytes kOtherCalls = {0x31, 0xFF, 0xE8, 0xE8, 2,
                           3,    4,    0xF4, 0x90};  // xor edi, edi; call; hlt; nop

TEST(AddKnownStackEnds, FindsTheCodeThatCoroutinesReturnTo) {
  CompiledCfi compiled;
  compiled.specials.emplace_back();
  const Bytes code = Join({kOtherCalls, kFinish, kOtherCalls, kGoexit, kOtherCalls});
  AddKnownStackEnds(0x100, code, compiled);
  const CompiledTable table(compiled);
  const std::uint32_t finish = 0x100 + 9;
  const std::uint32_t goexit = finish + 9 + 9 + 1;
  for (std::uint32_t at = 0xF0; at < 0x140; ++at) {
    EXPECT_EQ(table.At(at),
              at == finish - 1 || at == goexit - 1 ? UnwindRule::Stop() : UnwindRule::Unknown())
        << std::hex << at;
  }
}

TEST(AddKnownStackEnds, TakesNothingThatIsCutOff) {
  for (const Bytes& code : {kFinish, kGoexit}) {
    for (std::size_t cut = 1; cut <= code.size(); ++cut) {
      CompiledCfi compiled;
      AddKnownStackEnds(0x100, std::span(code).first(code.size() - cut), compiled);
      AddKnownStackEnds(0x100, std::span(code).last(code.size() - cut), compiled);
      EXPECT_TRUE(compiled.rows.empty()) << cut;
    }
  }
}

TEST(UnknownStretches, AreWhatNoRowSpeaksOf) {
  const auto of = [](std::vector<UnwindRow> rows) {
    std::vector<std::pair<std::uint32_t, std::uint32_t>> found;
    for (const auto& [begin, end] : UnknownStretches(
             {.rows = std::move(rows), .specials = {}, .statistics = {}}, 0x100, 0x20)) {
      found.emplace_back(begin, end);
    }
    return found;
  };
  using Found = std::vector<std::pair<std::uint32_t, std::uint32_t>>;
  const UnwindRule unknown = UnwindRule::Unknown();
  EXPECT_EQ(of({}), (Found{{0, 0x100}}));
  EXPECT_EQ(of({{0, FromSp(1)}}), (Found{}));
  EXPECT_EQ(of({{0x20, FromSp(1)},
                {0x30, FromSp(2)},
                {0x40, unknown},
                {0x50, unknown},
                {0x60, FromSp(1)}}),
            (Found{{0, 0x20}, {0x40, 0x60}}));
  EXPECT_EQ(of({{0x1F, FromSp(1)}, {0x40, unknown}, {0x5F, FromSp(1)}, {0xE0, unknown}}),
            (Found{{0xE0, 0x100}}));
}

TEST(AddStackEnd, ChangesWhatHoldsForItsReturnAddressOnly) {
  EhFrameBuilder builder;
  builder.Fde(builder.Cie(), kText + 0x200, 0x100, {});
  CompiledCfi compiled = builder.Compile();
  AddStackEnd(0x200, compiled);  // where the function begins
  AddStackEnd(0x280, compiled);  // in its middle
  AddStackEnd(0, compiled);      // never looked up: it lies before any module
  const CompiledTable table(compiled);
  for (const std::uint32_t end : {0x1FFu, 0x27Fu})
    EXPECT_EQ(table.At(end), UnwindRule::Stop()) << end;
  for (const std::uint32_t at : {0x200u, 0x27Eu, 0x280u, 0x2FFu})
    EXPECT_EQ(table.At(at), FromSp(1)) << at;
  for (const std::uint32_t at : {0x1FEu, 0x300u})
    EXPECT_EQ(table.At(at), UnwindRule::Unknown()) << at;
}

// What libgcc of mingw-w64 has.
const Bytes kStackProbe = {0x51, 0x50, 0x48, 0x3D, 0x00, 0x10, 0x00, 0x00, 0x48, 0x8D,
                           0x4C, 0x24, 0x18, 0x72, 0x19, 0x48, 0x81, 0xE9, 0x00, 0x10,
                           0x00, 0x00, 0x48, 0x83, 0x09, 0x00, 0x48, 0x2D, 0x00, 0x10,
                           0x00, 0x00, 0x48, 0x3D, 0x00, 0x10, 0x00, 0x00, 0x77, 0xE7,
                           0x48, 0x29, 0xC1, 0x48, 0x83, 0x09, 0x00, 0x58, 0x59, 0xC3};

CompiledCfi LeafFunctions() {
  CompiledCfi compiled;
  compiled.specials.emplace_back();
  compiled.rows = {
      {.offset = 0, .rule = FromSp(1), .special_register = {.where = SavedRegister::kUnchanged}}};
  return compiled;
}

TEST(AddStackProbes, FollowsWhatTheProbePushes) {
  CompiledCfi compiled = LeafFunctions();
  AddStackProbes(Join({Bytes(0x40, 0x90), kStackProbe, Bytes(0x40, 0x90)}), compiled);
  const CompiledTable table(std::move(compiled));
  const auto end = static_cast<std::uint32_t>(0x40 + kStackProbe.size());
  EXPECT_EQ(table.At(0x40), FromSp(1));
  EXPECT_EQ(table.At(0x41), FromSp(2));
  EXPECT_EQ(table.At(0x42), FromSp(3));
  EXPECT_EQ(table.At(end - 3), FromSp(3));
  EXPECT_EQ(table.At(end - 2), FromSp(2));
  EXPECT_EQ(table.At(end - 1), FromSp(1));
  EXPECT_EQ(table.At(end), FromSp(1));
  EXPECT_EQ(table.table.FindSpecialRegister(end).where, SavedRegister::kUnchanged);
}

TEST(AddStackProbes, WhatOnlyBeginsLikeOneStaysAsItIs) {
  CompiledCfi compiled = LeafFunctions();
  const std::vector<UnwindRow> rows = compiled.rows;
  AddStackProbes({kStackProbe.data(), kStackProbe.size() - 1}, compiled);
  AddStackProbes({}, compiled);
  EXPECT_EQ(compiled.rows, rows);
}

}  // namespace
}  // namespace strobe::testing
