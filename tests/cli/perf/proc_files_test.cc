#include "../../../src/cli/perf/proc_files.h"

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe::internal {
namespace {

using ::testing::IsEmpty;
using ::testing::UnorderedElementsAre;

TEST(IdsIn, AreTheNamesThatAreNumbers) {
  const testing::TemporaryDirectory directory;
  for (const char* name : {"1", "77", "self", "7x", "-3"})
    std::ofstream(directory.path() / name).put('x');
  EXPECT_THAT(IdsIn(directory.path().string()), UnorderedElementsAre(1U, 77U));
  EXPECT_THAT(IdsIn((directory.path() / "none").string()), IsEmpty());
}

TEST(StatusValue, IsEmptyForAProcessThatIsNotThere) {
  constexpr std::uint32_t kNone = 0xFFFFFFFF;
  EXPECT_EQ(StatusValue(kNone, "Tgid"), "");
  EXPECT_EQ(StatusNumber(kNone, "Tgid"), 0U);
}

TEST(WholeProcessName, IsWhatTheKernelKeepsWhereNothingSaysMore) {
  constexpr std::uint32_t kNone = 0xFFFFFFFF;
  EXPECT_EQ(WholeProcessName(kNone, "short"), "short");
  EXPECT_EQ(WholeProcessName(kNone, "fifteen letters"), "fifteen letters");
}

TEST(ContainerOf, IsUnknownForAProcessThatIsNotThere) {
  constexpr std::uint32_t kNone = 0xFFFFFFFF;
  EXPECT_EQ(ContainerOf(kNone), std::nullopt);
}

}  // namespace
}  // namespace strobe::internal
