#include "../../../src/cli/pgo/llvm_profile.h"

#include <string>

#include "../../../src/cli/pgo/count_scale.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(LlvmProfileTest, WritesTheLargestFunctionsFirst) {
  FunctionSamplesMap functions;
  functions["small"].lines[{.offset = 1}].count = 5;
  FunctionSamples& large = functions["_Z5largev"];
  large.entries = 7;
  large.lines[{.offset = 4}].count = 534;
  large.lines[{.offset = 5, .discriminator = 1}] = {.count = 20,
                                                    .calls = {{"_Z3barv", 12}, {"_Z3fooi", 8}}};
  FunctionSamples& inlined = large.inlined[{.offset = 6}]["inlined"];
  inlined.lines[{.offset = 1}].count = 200;
  inlined.inlined[{.offset = 2, .discriminator = 3}]["deeper"].lines[{.offset = 9}].count = 5;
  EXPECT_EQ(LlvmProfileText(functions, kCountOfSample),
            "_Z5largev:759:7\n"
            " 4: 534\n"
            " 5.1: 20 _Z3barv:12 _Z3fooi:8\n"
            " 6: inlined:205\n"
            "  1: 200\n"
            "  2.3: deeper:5\n"
            "   9: 5\n"
            "small:5:0\n"
            " 1: 5\n");
}

TEST(LlvmProfileTest, CountsHave31BitsAndKeepTheirProportions) {
  FunctionSamplesMap functions;
  functions["f"].lines = {{{.offset = 1}, {.count = 4e12}},
                          {{.offset = 2}, {.count = 1e12}},
                          {{.offset = 3}, {.count = 1}}};
  EXPECT_EQ(LlvmProfileText(functions, kCountOfSample),
            "f:2684354560:0\n"
            " 1: 2147483647\n"
            " 2: 536870912\n"
            " 3: 1\n");
}

TEST(LlvmProfileTest, LeavesOutNamesThatTheFormatCannotHave) {
  FunctionSamplesMap functions;
  functions["f"].lines[{.offset = 1}] = {.count = 3, .calls = {{"with space", 3}}};
  functions["f"].inlined[{.offset = 2}]["a\nb"].lines[{.offset = 1}].count = 9;
  functions["-[Class name]"].lines[{.offset = 1}].count = 2;
  functions[""].lines[{.offset = 1}].count = 2;
  EXPECT_EQ(LlvmProfileText(functions, kCountOfSample), "f:3:0\n 1: 3\n");
}

TEST(LlvmProfileTest, OfNothingIsNothing) {
  EXPECT_EQ(LlvmProfileText({}, 1), "");
  EXPECT_EQ(LlvmProfileText({{"f", {}}}, 1), "");
}

}  // namespace
}  // namespace strobe::internal
