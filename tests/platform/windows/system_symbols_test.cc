#include "../../../src/platform/windows/system_symbols.h"

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

// What it knows of real images is tested in tests/integration/windows_names_test.cc.
TEST(SystemSymbolsTest, AnImageThatIsNotThereHasNoNames) {
  const std::string path = "C:\\no\\such\\image.dll";
  int visits = 0;
  EXPECT_TRUE(VisitSystemSymbols(path, [&](std::uint64_t, std::uint64_t, std::string_view) {
    ++visits;
    return true;
  }));
  const std::array<std::uint64_t, 1> addresses = {0x1000};
  EXPECT_TRUE(
      VisitSystemLines(path, addresses, [&](std::uint64_t, std::span<const SourceFrame> frames) {
        visits += frames.empty() ? 0 : 1;
        return true;
      }));
  EXPECT_EQ(visits, 0);
}

}  // namespace
}  // namespace strobe::internal
