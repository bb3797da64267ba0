#include "../../../src/cli/readers/id_numbers.h"

#include <cstdint>
#include <limits>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(IdNumbersTest, NumbersIdsInTheOrderInWhichTheyAreSeen) {
  IdNumbers numbers;
  EXPECT_EQ(numbers.size(), 0u);
  EXPECT_EQ(numbers.Number(7), 0u);
  EXPECT_EQ(numbers.Number(1), 1u);
  EXPECT_EQ(numbers.Number(0), 2u);
  EXPECT_EQ(numbers.Number(7), 0u);
  EXPECT_EQ(numbers.Number(1), 1u);
  EXPECT_EQ(numbers.size(), 3u);
}

TEST(IdNumbersTest, TakesAny64BitNumber) {
  constexpr std::uint64_t kIds[] = {std::numeric_limits<std::uint64_t>::max(),
                                    std::uint64_t{1} << 20,
                                    (std::uint64_t{1} << 20) - 1,
                                    std::uint64_t{1} << 32,
                                    (std::uint64_t{1} << 32) + 1,
                                    1};
  IdNumbers numbers;
  for (int round = 0; round < 2; ++round) {
    std::uint32_t expected = 0;
    for (const std::uint64_t id : kIds) EXPECT_EQ(numbers.Number(id), expected++) << id;
  }
  EXPECT_EQ(numbers.size(), 6u);
}

TEST(IdNumbersTest, ATableThatGrowsKeepsItsNumbers) {
  IdNumbers numbers;
  for (std::uint32_t i = 0; i < 10'000; ++i) EXPECT_EQ(numbers.Number(std::uint64_t{i} * 3), i);
  for (std::uint32_t i = 0; i < 10'000; ++i) EXPECT_EQ(numbers.Number(std::uint64_t{i} * 3), i);
  EXPECT_EQ(numbers.Number(1), 10'000u) << "between those that have been seen";
}

}  // namespace
}  // namespace strobe::internal
