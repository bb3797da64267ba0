#include "../../../src/cli/perf/kernel_symbols.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(KernelSymbolsTest, AFunctionReachesToTheNext) {
  const KernelSymbols symbols(
      "ffffffff81000200 t second\n"
      "ffffffff81000000 T _text\n"
      "ffffffffc0001000 t of_module\t[module]\n");
  EXPECT_EQ(symbols.Find(0xffffffff80ffffff), "");
  EXPECT_EQ(symbols.Find(0xffffffff81000000), "_text");
  EXPECT_EQ(symbols.Find(0xffffffff810001ff), "_text");
  EXPECT_EQ(symbols.Find(0xffffffff81000200), "second");
  EXPECT_EQ(symbols.Find(0xffffffffffffffff), "of_module") << "without its module";
}

TEST(KernelSymbolsTest, OnlyCodeCounts) {
  const KernelSymbols symbols(
      "1000 T code\n1100 d data\n1200 B zeros\n1300 w weak\n1400 W weak_too\n1500 R constants\n");
  EXPECT_EQ(symbols.Find(0x1100), "code");
  EXPECT_EQ(symbols.Find(0x1200), "code");
  EXPECT_EQ(symbols.Find(0x1300), "weak");
  EXPECT_EQ(symbols.Find(0x1500), "weak_too");
}

TEST(KernelSymbolsTest, WithoutTheRightToSeeAddressesThereAreNone) {
  const KernelSymbols symbols("0000000000000000 T _text\n0000000000000000 T second\n");
  EXPECT_EQ(symbols.Find(0), "");
  EXPECT_EQ(symbols.Find(~std::uint64_t{0}), "");
  EXPECT_FALSE(symbols.Has("_text", 0));
}

TEST(KernelSymbolsTest, TellsWhetherANameIsAtAnAddress) {
  const KernelSymbols symbols("1000 T _stext\n1000 T _text\n2000 T other");
  EXPECT_TRUE(symbols.Has("_text", 0x1000));
  EXPECT_TRUE(symbols.Has("_stext", 0x1000));
  EXPECT_TRUE(symbols.Has("other", 0x2000)) << "the last line may have no end";
  EXPECT_FALSE(symbols.Has("other", 0x1000));
  EXPECT_FALSE(symbols.Has("_text", 0x1800));
}

TEST(KernelSymbolsTest, LinesOfAnotherFormAreLeftOut) {
  const KernelSymbols symbols("\n1000\n1000 T\n1000 T \nxyz T f\n1000 T g\n\n");
  EXPECT_EQ(symbols.Find(0x1000), "g");
  EXPECT_EQ(KernelSymbols("").Find(0x1000), "");
}

}  // namespace
}  // namespace strobe::internal
