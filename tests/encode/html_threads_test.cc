#include "../../src/encode/html/html_threads.h"

#include <cstdint>
#include <string>
#include <vector>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using Columns = std::vector<std::vector<std::uint64_t>>;

std::string BytesOf(const Columns& columns) {
  ColumnWriter writer;
  for (const auto& column : columns) writer.Column(column);
  return writer.bytes();
}

// Thread 7 has lived twice.
Profile TwoThreads() {
  Profile profile;
  profile.time_ns = 1000;
  profile.threads = {
      {.id = 7, .name = "a", .begin_ns = 1010, .end_ns = 1020, .cpu_ns = 5, .samples = 2},
      {.id = 8, .name = "b", .begin_ns = 0, .end_ns = 0, .cpu_ns = -1, .samples = 3},
      {.id = 7, .name = "a", .begin_ns = 1030, .end_ns = 0, .cpu_ns = 9, .samples = 4}};
  return profile;
}

TEST(PageThreadsTest, LivesOfAnIdAreOneThread) {
  PageTexts texts;
  ColumnWriter columns;
  WriteThreads(TwoThreads(), texts, columns);
  EXPECT_EQ(texts.texts(), (std::vector<std::string>{"", "7", "a", "8", "b"}));
  EXPECT_EQ(columns.bytes(), BytesOf({{1, 3}, {2, 4}, {6, 3}}));
}

TEST(PageThreadsTest, TheLifeWithTheMostCpuTimeComesFirst) {
  PageTexts texts;
  ColumnWriter columns;
  WriteLives(TwoThreads(), texts, columns);
  EXPECT_EQ(texts.texts(), (std::vector<std::string>{"", "7", "a", "8", "b"}));
  EXPECT_EQ(columns.bytes(),
            BytesOf({{3}, {1, 1, 3}, {2, 2, 4}, {31, 11, 0}, {0, 21, 0}, {10, 6, 0}, {4, 2, 3}}));
}

}  // namespace
}  // namespace strobe::internal
