#include "strobe/unwind/dwarf_expression.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <random>
#include <span>
#include <vector>

#include "eh_frame_builder.h"

namespace strobe::testing {
namespace {

using internal::ExpressionEnd;

// Register n has the value 1000 * n, but for one that is not known; memory is what lies there, and
// ends at kMemoryEnd.
struct FlatMachine {
  static constexpr unsigned kUnknownRegister = 5;
  static constexpr Address kMemoryEnd = 100'000;

  static bool Register(unsigned number, Address& value) {
    value = Address{1000} * number;
    return number != kUnknownRegister;
  }
  static bool Word(Address address, Address& value) {
    value = address + 1;
    return address < kMemoryEnd;
  }
};

struct Result {
  ExpressionEnd end = ExpressionEnd::kMalformed;
  Address value = 0;
};
Result Evaluate(const Bytes& expression) {
  Result result;
  const FlatMachine machine;
  result.end = internal::ExpressionEvaluator(std::span<const std::uint8_t>(expression), machine)
                   .Run(result.value);
  return result;
}
std::int64_t ValueOf(const Bytes& expression) {
  const Result result = Evaluate(expression);
  EXPECT_EQ(result.end, ExpressionEnd::kValue) << ::testing::PrintToString(expression);
  EXPECT_TRUE(internal::IsEvaluable(expression));
  return static_cast<std::int64_t>(result.value);
}

constexpr std::uint8_t Lit(std::uint8_t value) { return static_cast<std::uint8_t>(0x30 + value); }

TEST(DwarfExpression, ConstantsOfAllSizes) {
  EXPECT_EQ(ValueOf({Lit(0)}), 0);
  EXPECT_EQ(ValueOf({Lit(31)}), 31);
  EXPECT_EQ(ValueOf({0x08, 0xFF}), 255);
  EXPECT_EQ(ValueOf({0x09, 0xFF}), -1);
  EXPECT_EQ(ValueOf({0x0A, 0xFE, 0xFF}), 0xFFFE);
  EXPECT_EQ(ValueOf({0x0B, 0xFE, 0xFF}), -2);
  EXPECT_EQ(ValueOf(Join({{0x0C}, Fixed(std::uint32_t{0x80000000})})), 0x80000000);
  EXPECT_EQ(ValueOf(Join({{0x0D}, Fixed(std::uint32_t{0x80000000})})), -std::int64_t{0x80000000});
  for (const std::uint8_t operation : {0x0E, 0x0F})
    EXPECT_EQ(ValueOf(Join({{operation}, Fixed(std::uint64_t{1} << 40)})), std::int64_t{1} << 40);
  EXPECT_EQ(ValueOf(Join({{0x10}, Uleb(300)})), 300);
  EXPECT_EQ(ValueOf(Join({{0x11}, Sleb(-300)})), -300);
}

TEST(DwarfExpression, RegistersAndMemory) {
  EXPECT_EQ(ValueOf({0x77, 8}), 7008);
  EXPECT_EQ(ValueOf({0x77, 0x78}), 6992);
  EXPECT_EQ(ValueOf({0x92, 9, 1}), 9001);
  EXPECT_EQ(ValueOf({0x77, 8, 0x06}), 7009);
  EXPECT_EQ(ValueOf({0x77, 8, 0x06, 0x23, 8}), 7017);
  // OpenSSL: the slot's place depends on a register.
  EXPECT_EQ(ValueOf({0x77, 8, 0x79, 0, 0x38, 0x1E, 0x22, 0x06, 0x23, 8}), 7008 + 72'000 + 1 + 8);
}

TEST(DwarfExpression, Arithmetic) {
  const auto of = [](std::uint8_t left, std::uint8_t right, std::uint8_t operation) {
    return ValueOf({0x09, left, 0x09, right, operation});
  };
  EXPECT_EQ(of(12, 10, 0x1A), 8);
  EXPECT_EQ(of(12, 10, 0x1C), 2);
  EXPECT_EQ(of(12, 0xFF, 0x1E), -12);
  EXPECT_EQ(of(12, 3, 0x21), 15);
  EXPECT_EQ(of(12, 0xF4, 0x22), 0);
  EXPECT_EQ(of(3, 4, 0x24), 48);
  EXPECT_EQ(of(0xFF, 60, 0x25), 15);
  EXPECT_EQ(of(0xF0, 2, 0x26), -4);
  EXPECT_EQ(of(12, 10, 0x27), 6);
  for (const std::uint8_t operation : {0x24, 0x25}) EXPECT_EQ(of(1, 64, operation), 0);
  EXPECT_EQ(of(0x80, 64, 0x26), -1);
  EXPECT_EQ(ValueOf({Lit(5), 0x1F}), -5);
  EXPECT_EQ(ValueOf({Lit(0), 0x20}), -1);
  struct Comparison {
    std::uint8_t operation;
    bool less, equal, greater;
  };
  for (const Comparison& c : {Comparison{0x29, false, true, false},
                              {0x2A, false, true, true},
                              {0x2B, false, false, true},
                              {0x2C, true, true, false},
                              {0x2D, true, false, false},
                              {0x2E, true, false, true}}) {
    EXPECT_EQ(of(0xFE, 3, c.operation), c.less) << int{c.operation};
    EXPECT_EQ(of(3, 3, c.operation), c.equal) << int{c.operation};
    EXPECT_EQ(of(3, 0xFE, c.operation), c.greater) << int{c.operation};
  }
}

TEST(DwarfExpression, PlacesOfTheStack) {
  EXPECT_EQ(ValueOf({Lit(1), Lit(2), 0x12, 0x22}), 4);
  EXPECT_EQ(ValueOf({Lit(1), Lit(2), 0x13}), 1);
  EXPECT_EQ(ValueOf({Lit(9), Lit(2), 0x14, 0x1C}), -7);
  EXPECT_EQ(ValueOf({Lit(9), Lit(2), 0x16, 0x1C}), -7);
  EXPECT_EQ(ValueOf({Lit(9), 0x96}), 9);
}

TEST(DwarfExpression, SaysWhyThereIsNoValue) {
  EXPECT_EQ(Evaluate({0x75, 0}).end, ExpressionEnd::kNoRegister);
  EXPECT_TRUE(internal::IsEvaluable(Bytes{0x75, 0}));
  EXPECT_EQ(Evaluate(Join({{0x10}, Uleb(FlatMachine::kMemoryEnd), {0x06}})).end,
            ExpressionEnd::kNoMemory);
  const Bytes malformed[] = {
      {},     {0x06},          {0x12},          {Lit(1), 0x14}, {Lit(1), 0x22},
      {0x77}, {0x77, 0x80},    {0x0C, 1, 2, 3}, {0x92, 32, 0},  {0x2F, 0, 0},  // a jump
      {0x9C},                                                                  // the CFA
      {0x1B},                                                                  // a division
      {0xFF}, Bytes(9, Lit(1))};
  for (const Bytes& expression : malformed) {
    EXPECT_EQ(Evaluate(expression).end, ExpressionEnd::kMalformed)
        << ::testing::PrintToString(expression);
    EXPECT_FALSE(internal::IsEvaluable(expression));
  }
}

TEST(DwarfExpression, AnyBytesEnd) {
  std::mt19937 random(7);
  for (int i = 0; i < 100'000; ++i) {
    Bytes expression(random() % 32);
    for (std::uint8_t& byte : expression) byte = static_cast<std::uint8_t>(random());
    static_cast<void>(Evaluate(expression));
  }
}

}  // namespace
}  // namespace strobe::testing
