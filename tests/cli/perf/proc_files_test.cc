#include "../../../src/cli/perf/proc_files.h"

#include <cstdint>
#include <fstream>
#include <optional>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/test_system.h"
#include "strobe/platform/native.h"

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

TEST(ThreadCalled, AndItsChildAreThoseOfTheProcess) {
  if (!IsProcOwn()) GTEST_SKIP() << "there is no /proc";
  const auto own = static_cast<std::uint32_t>(NativePlatform::ProcessId());
  const std::uint32_t parent = StatusNumber(own, "PPid");
  EXPECT_EQ(ThreadCalled(own, own), own);
  EXPECT_EQ(ThreadCalled(own, parent), 0U);
  EXPECT_EQ(ChildCalled(parent, own), own);
  EXPECT_EQ(ChildCalled(own, own), 0U);
}

}  // namespace
}  // namespace strobe::internal
