#include "../../../src/cli/pgo/symbol_order.h"

#include <cstdint>
#include <string>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

CodeSamples::Place Symbol(const std::string& name, std::int64_t amount,
                          std::uint64_t symbol_bytes = 100) {
  return {.symbol = name, .symbol_bytes = symbol_bytes, .amount = amount};
}

TEST(SymbolOrderTest, PutsAFunctionBehindItsCaller) {
  CodeSamples code;
  code.places = {Symbol("main", 0),   Symbol("parse", 50), Symbol("write", 900),
                 Symbol("hash", 400), Symbol("copy", 300), Symbol("copy", 20)};
  // copy is called by write most, and hash by parse; main's own code is not sampled.
  code.calls = {{.caller = 0, .callee = 1, .amount = 450},
                {.caller = 1, .callee = 3, .amount = 400},
                {.caller = 2, .callee = 4, .amount = 300},
                {.caller = 1, .callee = 5, .amount = 20}};
  EXPECT_EQ(SymbolOrderText(code), "write\ncopy\nmain\nparse\nhash\n");
}

TEST(SymbolOrderTest, TheDensestGroupsComeFirst) {
  CodeSamples code;
  code.places = {Symbol("large", 1000, 100000), Symbol("small", 100, 100), Symbol("", 5000)};
  EXPECT_EQ(SymbolOrderText(code), "small\nlarge\n");
}

TEST(SymbolOrderTest, AGroupHasALimit) {
  CodeSamples code;
  code.places = {Symbol("caller", 10, kMaxGroupBytes), Symbol("callee", 500)};
  code.calls = {{.caller = 0, .callee = 1, .amount = 500}};
  EXPECT_EQ(SymbolOrderText(code), "callee\ncaller\n");
}

TEST(SymbolOrderTest, RecursionIsNoCaller) {
  CodeSamples code;
  code.places = {Symbol("a", 10), Symbol("b", 20)};
  code.calls = {{.caller = 0, .callee = 0, .amount = 10},
                {.caller = 0, .callee = 1, .amount = 5},
                {.caller = 1, .callee = 0, .amount = 5}};
  EXPECT_EQ(SymbolOrderText(code), "a\nb\n");
}

}  // namespace
}  // namespace strobe::internal
