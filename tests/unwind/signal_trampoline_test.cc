#include "strobe/unwind/signal_trampoline.h"

#include <gtest/gtest.h>

#include <vector>

#include "eh_frame_builder.h"

namespace strobe::testing {
namespace {

constexpr std::uint32_t kTrampoline = 0x240;

// Code of nothing but nops, with a trampoline at each of `offsets`.
Bytes CodeWith(const std::vector<std::uint32_t>& offsets) {
  Bytes code;
  while (code.size() < 0x400) code = Join({code, Fixed(std::uint32_t{0xD503201F})});
  for (const std::uint32_t offset : offsets) {
    const Bytes trampoline = Join({Fixed(std::uint32_t{0xD2801168}), Fixed(std::uint32_t{0xD4000001})});  // mov x8, #139; svc #0
    std::copy(trampoline.begin(), trampoline.end(), code.begin() + offset);
  }
  return code;
}

TEST(SignalTrampoline, TakesThePlaceOfWhatOlderKernelsSayOfIt) {
  EhFrameBuilder builder;
  const std::size_t cie = builder.Cie(Aarch64Cie());
  builder.Fde(cie, EhFrameBuilder::kText + 0x200, 0x100, DefCfa(kX29, 0));
  CompiledCfi compiled = builder.Compile(CfiArchitecture::kAarch64);
  AddAarch64SignalTrampolines(CodeWith({kTrampoline}), compiled);
  const CompiledTable table(compiled);
  for (const std::uint32_t at : {kTrampoline - 1, kTrampoline, kTrampoline + 4}) {
    EXPECT_EQ(table.SpecialAt(at), Aarch64SignalFrame()) << at;
  }
  EXPECT_EQ(table.At(0x1FF), UnwindRule::Unknown());
  EXPECT_EQ(table.At(kTrampoline - 5), FromFp(0, 0));
  EXPECT_EQ(table.At(kTrampoline + 8), FromFp(0, 0));
  EXPECT_EQ(table.At(0x300), UnwindRule::Unknown());
}

TEST(SignalTrampoline, IsFoundWithoutAnyFrameInformation) {
  CompiledCfi compiled;
  compiled.specials.emplace_back();
  AddAarch64SignalTrampolines(CodeWith({4, kTrampoline}), compiled);
  const CompiledTable table(compiled);
  for (const std::uint32_t at : {3u, 8u, kTrampoline - 1, kTrampoline + 7}) EXPECT_EQ(table.SpecialAt(at), Aarch64SignalFrame()) << at;
  for (const std::uint32_t at : {12u, kTrampoline - 5, kTrampoline + 8}) EXPECT_EQ(table.At(at), UnwindRule::Unknown()) << at;
}

TEST(SignalTrampoline, CodeWithoutOneStaysAsItIs) {
  EhFrameBuilder builder;
  builder.Fde(builder.Cie(Aarch64Cie()), EhFrameBuilder::kText, 0x100, {});
  CompiledCfi compiled = builder.Compile(CfiArchitecture::kAarch64);
  const std::vector<UnwindRow> rows = compiled.rows;
  const std::size_t specials = compiled.specials.size();
  AddAarch64SignalTrampolines(CodeWith({}), compiled);
  AddAarch64SignalTrampolines({}, compiled);
  EXPECT_EQ(compiled.rows, rows);
  EXPECT_EQ(compiled.specials.size(), specials);
}

}  // namespace
}  // namespace strobe::testing
