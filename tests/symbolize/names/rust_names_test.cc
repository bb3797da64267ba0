// Names as rustc 1.95 writes them, and hostile ones.
#include "../../../src/symbolize/names/rust_names.h"

#include <cstddef>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(RustName, IsThePathWithoutHashes) {
  EXPECT_EQ(RustName("_RNvCskK7mfDs1mzF_1m5hello"), "m::hello");
  EXPECT_EQ(RustName("_RNvXs_Cs1_1mNtB4_2SqNtB4_5Shape4area"), "<m::Sq as m::Shape>::area");
  EXPECT_EQ(RustName("_RNvMCs1_1mNtB2_2Sq3new"), "<m::Sq>::new");
  EXPECT_EQ(RustName("_RNCNvCs1_1m4main0B3_"), "m::main::{closure#0}");
  EXPECT_EQ(RustName("_RNCNvCs1_1m4mains_0B3_"), "m::main::{closure#1}");
  EXPECT_EQ(RustName("_RNSNvCs1_1m4call6vtableB3_"), "m::call::{shim:vtable#0}");
}

TEST(RustName, HasItsGenericArguments) {
  EXPECT_EQ(RustName("_RINvCs1_1m3genhTlmEjEB2_"), "m::gen::<u8, (i32, u32), usize>");
  EXPECT_EQ(RustName("_RINvCs1_1m3genTaEEB2_"), "m::gen::<(i8,)>");
  EXPECT_EQ(RustName("_RINvCs1_1m3genRShQReEB2_"), "m::gen::<&[u8], &mut &str>");
  EXPECT_EQ(RustName("_RINvCs1_1m3genPbOcEB2_"), "m::gen::<*const bool, *mut char>");
  EXPECT_EQ(RustName("_RINvCs1_1m3genAhj3_EB2_"), "m::gen::<[u8; 3]>");
  EXPECT_EQ(RustName("_RINvCs1_1m3genKj12c_Kb1_Kc78_Kan7f_EB2_"), "m::gen::<300, true, 'x', -127>");
  EXPECT_EQ(RustName("_RINvCs1_1m3genINtB2_3VeceEEB2_"), "m::gen::<m::Vec<str>>");
}

TEST(RustName, HasFunctionTypesAndTraits) {
  EXPECT_EQ(RustName("_RINvCs1_1m3genFUKClEmEB2_"), "m::gen::<unsafe extern \"C\" fn(i32) -> u32>");
  EXPECT_EQ(RustName("_RINvCs1_1m3genFG_RL0_hEuEB2_"), "m::gen::<for<'a> fn(&'a u8)>");
  EXPECT_EQ(RustName("_RINvCs1_1m3genDNtB2_4ItemNtB2_4SendEL_EB2_"),
            "m::gen::<dyn m::Item + m::Send>");
  EXPECT_EQ(RustName("_RINvCs1_1m3genDNtB2_4Iterp4ItemhEL_EB2_"),
            "m::gen::<dyn m::Iter<Item = u8>>");
}

TEST(RustName, HasLettersBeyondAscii) {
  EXPECT_EQ(RustName("_RNvCs1_1mu8gre_rib"), "");
  EXPECT_EQ(RustName("_RNvCs1_1mu10mnchen_3ya"), "m::m\u00FCnchen");
}

TEST(RustName, KeepsWhatCompilersAddButForItsModule) {
  EXPECT_EQ(RustName("_RNvCs1_1m5hello.cold"), "m::hello.cold");
  EXPECT_EQ(RustName("_RNvCs1_1m5hello.llvm.123456"), "m::hello");
}

TEST(RustName, IsEmptyForOthers) {
  for (const char* name :
       {"", "_R", "_R3foo", "main", "_ZN1m5helloE", "_RNvCs1_1m9hello", "_RNvCs1_", "_RB_",
        "_RNvB_3foo", "_RNvC1mB99_", "_RNvCs1_1m5helloX", "_RINvC1m3genL9_E"})
    EXPECT_EQ(RustName(name), "") << name;
  EXPECT_EQ(RustName("_RINvC1m3gen" + std::string(100'000, 'S') + "hE"), "");
}

// A number as references have it.
std::string Base62(std::size_t number) {
  if (number == 0) return "_";
  constexpr std::string_view kDigits =
      "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string digits;
  for (--number; number > 0 || digits.empty(); number /= 62)
    digits.insert(0, 1, kDigits[number % 62]);
  return digits + "_";
}

// A function with arguments each of which is a pair of the one before: twice as long.
std::string DoublingPath(int doublings) {
  std::string path = "INvC1m1f";
  std::size_t previous = path.size();
  path += "ThhE";
  for (int i = 0; i < doublings; ++i) {
    const std::string reference = "B" + Base62(previous);
    previous = path.size();
    path += "T" + reference + reference + "E";
  }
  return "_R" + path + "E";
}

TEST(RustName, IsEmptyIfItSaysTooMuch) {
  EXPECT_EQ(RustName(DoublingPath(1)), "m::f::<(u8, u8), ((u8, u8), (u8, u8))>");
  EXPECT_NE(RustName(DoublingPath(10)), "");
  for (int doublings = 16; doublings <= 60; ++doublings)
    EXPECT_EQ(RustName(DoublingPath(doublings)), "");
}

TEST(LegacyRustName, IsThePathWithoutItsHash) {
  EXPECT_EQ(LegacyRustName("core::fmt::write::h0123456789abcdef"), "core::fmt::write");
  EXPECT_EQ(LegacyRustName("_$LT$m..Sq$LT$T$GT$$u20$as$u20$m..Shape$GT$::area::h37487cf1799f445b"),
            "<m::Sq<T> as m::Shape>::area");
  EXPECT_EQ(LegacyRustName("m::main::_$u7b$$u7b$closure$u7d$$u7d$::h0123456789abcdef"),
            "m::main::{{closure}}");
  EXPECT_EQ(LegacyRustName("a::$RF$$BP$$LP$$C$$RP$::h0123456789abcdef"), "a::&*(,)");
}

TEST(LegacyRustName, LeavesOtherNamesAlone) {
  for (const char* name : {"", "foo::bar(int)", "a::h0123456789abcde", "a::h0123456789abcdeg",
                           "h0123456789abcdef", "a$LT$b"})
    EXPECT_EQ(LegacyRustName(name), name);
  EXPECT_EQ(LegacyRustName("$$u$u110000$LT::h0123456789abcdef"), "$$u$u110000$LT");
}

}  // namespace
}  // namespace strobe::internal
