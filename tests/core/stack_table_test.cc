#include "strobe/core/stack_table.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using Frames = std::vector<Address>;

std::pair<Frames, StackEnd> StackOf(const auto& table, std::uint32_t number) {
  Frames frames(100);
  StackEnd end{};
  frames.resize(table.Read(number, frames, end));
  return {frames, end};
}

TEST(StackTable, GivesEachStackANumber) {
  const auto table = std::make_unique<StackTable<>>();
  const std::array<std::pair<Frames, StackEnd>, 6> stacks{{{{1, 2, 3}, StackEnd::kComplete},
                                                           {{1, 2, 3}, StackEnd::kTruncated},
                                                           {{4, 2, 3}, StackEnd::kComplete},
                                                           {{2, 3}, StackEnd::kComplete},
                                                           {{}, StackEnd::kBroken},
                                                           {{3, 3, 3, 3}, StackEnd::kComplete}}};
  std::vector<std::uint32_t> numbers;
  for (const auto& [frames, end] : stacks) numbers.push_back(table->Add(frames, end));
  for (std::size_t i = 0; i < stacks.size(); ++i) {
    ASSERT_NE(numbers[i], StackTable<>::kNone);
    EXPECT_EQ(StackOf(*table, numbers[i]), stacks[i]);
    EXPECT_EQ(table->Add(stacks[i].first, stacks[i].second), numbers[i]);
  }
  EXPECT_EQ(table->refused(), 0U);
}

TEST(StackTable, KeepsTheNumberOfAStackThatTheCollectorFinishes) {
  const auto table = std::make_unique<StackTable<>>();
  const std::uint32_t stack = table->AddPending(77);
  EXPECT_NE(table->AddPending(78), stack);
  const Frames frames = StackOf(*table, stack).first;
  ASSERT_EQ(frames.size(), 1U);
  EXPECT_EQ(PendingNumber(frames[0]), 77U);
  EXPECT_EQ(PendingNumber(0x401000), 0U);
}

TEST(StackTable, ReadsTheLeavesOfAStackThatIsTooLong) {
  const auto table = std::make_unique<StackTable<>>();
  const std::uint32_t number = table->Add(Frames{1, 2, 3, 4}, StackEnd::kTruncated);
  Frames frames(2);
  StackEnd end{};
  EXPECT_EQ(table->Read(number, frames, end), 2U);
  EXPECT_EQ(frames, (Frames{1, 2}));
  EXPECT_EQ(end, StackEnd::kTruncated);
}

TEST(StackTable, RefusesAndCountsWhatDoesNotFit) {
  const auto table = std::make_unique<StackTable<6>>();
  std::uint64_t refused = 0;
  std::vector<std::pair<Address, std::uint32_t>> added;
  for (Address address = 1; address <= 200; ++address) {
    const std::uint32_t number = table->Add(Frames{address}, StackEnd::kComplete);
    if (number == StackTable<6>::kNone) {
      ++refused;
    } else {
      added.emplace_back(address, number);
    }
  }
  EXPECT_EQ(added.size(), 63U) << "one node is the end";
  EXPECT_EQ(table->refused(), refused);
  for (const auto& [address, number] : added)
    EXPECT_EQ(StackOf(*table, number).first, Frames{address});
  table->Clear();
  EXPECT_NE(table->Add(Frames{1, 2, 3}, StackEnd::kComplete), StackTable<6>::kNone);
}

TEST(StackTable, GivesThreadsStacksThatAreWhole) {
  const auto table = std::make_unique<StackTable<>>();
  std::vector<std::thread> threads;
  std::array<int, 4> wrong{};
  for (std::size_t i = 0; i < wrong.size(); ++i) {
    threads.emplace_back([&, i] {
      for (Address k = 0; k < 3000; ++k) {
        const Frames frames{k % 7, k % 11, k % 13, k % 3};
        const std::uint32_t number = table->Add(frames, StackEnd::kComplete);
        if (StackOf(*table, number).first != frames) ++wrong[i];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, (std::array<int, 4>{}));
  EXPECT_EQ(table->refused(), 0U);
}

}  // namespace
}  // namespace strobe::internal
