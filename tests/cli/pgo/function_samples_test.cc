#include "../../../src/cli/pgo/function_samples.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

// A function's own frame at a line, counted from the begin of the function in line 10.
SourceFrame At(const std::string& function, std::uint32_t offset, std::uint32_t discriminator = 0) {
  return {.function = function,
          .file = "a.cc",
          .line = 10 + offset,
          .declaration_line = 10,
          .discriminator = discriminator};
}

// `frames` are innermost first.
CodeSamples::Place PlaceAt(std::vector<SourceFrame> frames, std::int64_t amount,
                           bool is_entry = false) {
  return {.frames = std::move(frames), .amount = amount, .is_entry = is_entry};
}

double CountAt(const FunctionSamples& function, LineLocation location) {
  const auto found = function.lines.find(location);
  return found == function.lines.end() ? 0 : found->second.count;
}

TEST(FunctionSamplesTest, ALineOfUnknownCodeHasTheLargestAmountOfItsAddresses) {
  CodeSamples code;
  code.places = {PlaceAt({At("f", 3)}, 10), PlaceAt({At("f", 3)}, 70), PlaceAt({At("f", 3)}, 40),
                 PlaceAt({At("f", 4)}, 5)};
  const FunctionSamplesMap functions = MakeFunctionSamples(code, DiscriminatorKind::kClang);
  ASSERT_EQ(functions.size(), 1u);
  const FunctionSamples& f = functions.at("f");
  EXPECT_EQ(CountAt(f, {.offset = 3}), 70) << "not 120, which depends on the instructions";
  EXPECT_EQ(CountAt(f, {.offset = 4}), 5);
  EXPECT_EQ(f.total(), 75);
}

TEST(FunctionSamplesTest, ALineHasTheMeanAmountOfItsCode) {
  CodeSamples code;
  code.places = {PlaceAt({At("f", 3)}, 10), PlaceAt({At("f", 3)}, 70), PlaceAt({At("f", 4)}, 40)};
  code.places[0].code_bytes = code.places[1].code_bytes = 16;
  code.places[2].code_bytes = 8;
  const FunctionSamples f = MakeFunctionSamples(code, DiscriminatorKind::kClang).at("f");
  EXPECT_EQ(CountAt(f, {.offset = 3}), 20) << "of four instructions";
  EXPECT_EQ(CountAt(f, {.offset = 4}), 20) << "of two";
}

TEST(FunctionSamplesTest, DiscriminatorsTellBlocksOfALineApart) {
  CodeSamples code;
  // 2 and 4 are the bases 1 and 2, packed.
  code.places = {PlaceAt({At("f", 3)}, 1), PlaceAt({At("f", 3, 2)}, 20),
                 PlaceAt({At("f", 3, 4)}, 300)};
  const FunctionSamples f = MakeFunctionSamples(code, DiscriminatorKind::kClang).at("f");
  EXPECT_EQ(CountAt(f, {.offset = 3}), 1);
  EXPECT_EQ(CountAt(f, {.offset = 3, .discriminator = 1}), 20);
  EXPECT_EQ(CountAt(f, {.offset = 3, .discriminator = 2}), 300);
}

TEST(FunctionSamplesTest, AnInstructionOfACopyStandsForAllCopies) {
  // The base 0 is one bit; then comes the number of copies.
  const std::uint32_t four_copies = (4U << 1) << 1 | 1U;
  EXPECT_EQ(ClangDiscriminator::Decode(four_copies).copies, 4u);
  CodeSamples code;
  code.places = {PlaceAt({At("f", 3, four_copies)}, 25)};
  EXPECT_EQ(CountAt(MakeFunctionSamples(code, DiscriminatorKind::kClang).at("f"), {.offset = 3}),
            100);
}

TEST(FunctionSamplesTest, ThoseOfGccAreNumbers) {
  CodeSamples code;
  code.places = {PlaceAt({At("f", 3, 17)}, 25)};
  const FunctionSamples f = MakeFunctionSamples(code, DiscriminatorKind::kPlain).at("f");
  EXPECT_EQ(CountAt(f, {.offset = 3, .discriminator = 17}), 25);
}

TEST(FunctionSamplesTest, DecodesNumbersOfTwoLengths) {
  const auto base = [](std::uint32_t packed) { return ClangDiscriminator::Decode(packed).base; };
  EXPECT_EQ(base(0), 0u);
  EXPECT_EQ(base(1), 0u);
  EXPECT_EQ(base(31U << 1), 31u);
  // 12 bits: the lower 5, a mark, the upper 7.
  EXPECT_EQ(base((3U | 0x20U | (2U << 6)) << 1), 2U * 32 + 3);
  EXPECT_EQ(ClangDiscriminator::Decode(0).copies, 1u);
  EXPECT_EQ(ClangDiscriminator::Decode(~0U).copies, 1u);
}

TEST(FunctionSamplesTest, InlinedFunctionsAreWithinTheirCallers) {
  CodeSamples code;
  code.places = {PlaceAt({At("inner", 1), At("middle", 2, 2), At("outer", 5)}, 8),
                 PlaceAt({At("middle", 7), At("outer", 5)}, 4), PlaceAt({At("inner", 1)}, 2)};
  const FunctionSamplesMap functions = MakeFunctionSamples(code, DiscriminatorKind::kClang);
  ASSERT_EQ(functions.size(), 2u) << "inner has code of its own, too";
  const FunctionSamples& outer = functions.at("outer");
  EXPECT_EQ(outer.total(), 12);
  const FunctionSamples& middle = outer.inlined.at({.offset = 5}).at("middle");
  EXPECT_EQ(CountAt(middle, {.offset = 7}), 4);
  const FunctionSamples& inner = middle.inlined.at({.offset = 2, .discriminator = 1}).at("inner");
  EXPECT_EQ(CountAt(inner, {.offset = 1}), 8);
  EXPECT_EQ(functions.at("inner").total(), 2);
}

TEST(FunctionSamplesTest, AFunctionIsEnteredAsOftenAsItsFirstLineIsExecuted) {
  CodeSamples code;
  code.places = {PlaceAt({At("f", 1)}, 0, true), PlaceAt({At("f", 1)}, 30),
                 PlaceAt({At("f", 9)}, 500)};
  EXPECT_EQ(MakeFunctionSamples(code, DiscriminatorKind::kClang).at("f").entries, 30);
}

TEST(FunctionSamplesTest, CalleesShareTheCountOfTheirCallersLine) {
  CodeSamples code;
  code.places = {PlaceAt({At("main", 4)}, 100), PlaceAt({At("f", 2)}, 60),
                 PlaceAt({At("g", 2)}, 20)};
  // What is in the profile below the calls, as amounts.
  code.calls = {{.caller = 0, .callee = 1, .amount = 60}, {.caller = 0, .callee = 2, .amount = 20}};
  const FunctionSamplesMap functions = MakeFunctionSamples(code, DiscriminatorKind::kClang);
  const FunctionSamples::Line& line = functions.at("main").lines.at({.offset = 4});
  EXPECT_EQ(line.count, 100);
  EXPECT_EQ(line.calls.at("f"), 75);
  EXPECT_EQ(line.calls.at("g"), 25);
  EXPECT_EQ(functions.at("f").entries, 75);
  EXPECT_EQ(functions.at("g").entries, 25);
}

TEST(FunctionSamplesTest, ACallersLineWithoutSamplesIsExecutedAsOftenAsTheCalleeIsEntered) {
  CodeSamples code;
  code.places = {PlaceAt({At("main", 4)}, 0), PlaceAt({At("main", 6)}, 0),
                 PlaceAt({At("f", 0)}, 40, true), PlaceAt({At("f", 2)}, 60)};
  code.calls = {{.caller = 0, .callee = 3, .amount = 75}, {.caller = 1, .callee = 2, .amount = 25}};
  const FunctionSamplesMap functions = MakeFunctionSamples(code, DiscriminatorKind::kClang);
  EXPECT_EQ(functions.at("f").entries, 40);
  EXPECT_EQ(CountAt(functions.at("main"), {.offset = 4}), 30);
  EXPECT_EQ(CountAt(functions.at("main"), {.offset = 6}), 10);
}

TEST(FunctionSamplesTest, AFunctionWithCountsHasEntries) {
  CodeSamples code;
  code.places = {PlaceAt({At("f", 0)}, 0, true), PlaceAt({At("f", 9)}, 500),
                 PlaceAt({At("f", 4)}, 20),      PlaceAt({At("inner", 1), At("f", 2)}, 7),
                 PlaceAt({At("g", 3)}, 5),       PlaceAt({At("inner", 1), At("g", 6)}, 7)};
  const FunctionSamplesMap functions = MakeFunctionSamples(code, DiscriminatorKind::kClang);
  EXPECT_EQ(functions.at("f").entries, 7) << "the first place with samples: what is inlined there";
  EXPECT_EQ(functions.at("g").entries, 5);
}

// None but the last one has samples of its own.
TEST(FunctionSamplesTest, EachCallOfAStackHasACount) {
  CodeSamples code;
  code.places = {PlaceAt({At("main", 4)}, 0), PlaceAt({At("run", 6)}, 0),
                 PlaceAt({At("step", 2), At("walk", 3)}, 0), PlaceAt({At("f", 5)}, 40)};
  code.calls = {{.caller = 0, .callee = 1, .amount = 40},
                {.caller = 1, .callee = 2, .amount = 40},
                {.caller = 2, .callee = 3, .amount = 40}};
  const FunctionSamplesMap functions = MakeFunctionSamples(code, DiscriminatorKind::kClang);
  ASSERT_EQ(functions.size(), 4u);
  EXPECT_EQ(functions.at("main").lines.at({.offset = 4}).calls.at("run"), 40);
  EXPECT_EQ(functions.at("run").lines.at({.offset = 6}).calls.at("walk"), 40);
  const FunctionSamples& step = functions.at("walk").inlined.at({.offset = 3}).at("step");
  EXPECT_EQ(step.lines.at({.offset = 2}).calls.at("f"), 40);
  for (const auto& [name, function] : functions) EXPECT_EQ(function.entries, 40) << name;
}

// A recursion that has no samples but below it.
TEST(FunctionSamplesTest, FunctionsThatCallEachOtherEnd) {
  CodeSamples code;
  code.places = {PlaceAt({At("even", 1)}, 0), PlaceAt({At("odd", 1)}, 0)};
  code.calls = {{.caller = 0, .callee = 1, .amount = 3}, {.caller = 1, .callee = 0, .amount = 3}};
  EXPECT_TRUE(MakeFunctionSamples(code, DiscriminatorKind::kClang).empty());
}

TEST(FunctionSamplesTest, PlacesWithoutLinesCountNothing) {
  SourceFrame no_begin = At("f", 3);
  no_begin.declaration_line = 0;
  SourceFrame no_line = At("f", 3);
  no_line.line = 0;
  CodeSamples code;
  code.places = {PlaceAt({}, 1), PlaceAt({no_begin}, 1), PlaceAt({no_line}, 1),
                 PlaceAt({At("g", 1), no_begin}, 1)};
  for (const CodeSamples::Place& place : code.places) EXPECT_FALSE(IsLocated(place));
  EXPECT_TRUE(MakeFunctionSamples(code, DiscriminatorKind::kClang).empty());
}

TEST(FunctionSamplesTest, LinesBeforeTheFunctionCountModulo65536) {
  CodeSamples code;
  SourceFrame before = At("f", 0);
  before.line = 8;
  code.places = {PlaceAt({before}, 1)};
  EXPECT_EQ(
      CountAt(MakeFunctionSamples(code, DiscriminatorKind::kClang).at("f"), {.offset = 65534}), 1);
}

TEST(FunctionSamplesTest, SumsAddUp) {
  CodeSamples code;
  code.places = {PlaceAt({At("inner", 1), At("f", 5)}, 8), PlaceAt({At("f", 0)}, 3, true)};
  FunctionSamples sum = MakeFunctionSamples(code, DiscriminatorKind::kClang).at("f");
  sum.Add(MakeFunctionSamples(code, DiscriminatorKind::kClang).at("f"));
  EXPECT_EQ(sum.total(), 22);
  EXPECT_EQ(sum.entries, 6);
}

}  // namespace
}  // namespace strobe::internal
