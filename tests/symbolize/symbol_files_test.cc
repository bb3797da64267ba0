#include "strobe/symbolize/symbol_files.h"

#include "gtest/gtest.h"

namespace strobe {
namespace {

TEST(SymbolFiles, ASystemWithoutFilesHasNothing) {
  const NoSymbolFiles files;
  EXPECT_EQ(files.Open("/"), nullptr);
  EXPECT_TRUE(files.OwnVdso(0, 0, ~std::uint64_t{0}).empty());
  EXPECT_TRUE(files.InflateXz({}, 1).empty());
  EXPECT_TRUE(files.VisitSymbols("/", [](auto&&...) {
    ADD_FAILURE() << "there is no symbol";
    return true;
  }));
  EXPECT_TRUE(files.VisitLines("/", {}, [](auto&&...) {
    ADD_FAILURE() << "there is no line";
    return true;
  }));
}

}  // namespace
}  // namespace strobe
