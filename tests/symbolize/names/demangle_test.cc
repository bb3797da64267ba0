// Demangling within bounds, seen through what the library gives its symbolizer.
#include "../../../src/symbolize/names/demangle.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(DemangleTest, NamesAsProgrammersWriteThem) {
  Demangler demangler;
  EXPECT_EQ(demangler.Demangle("_ZN3foo3barEi"), "foo::bar(int)");
  EXPECT_EQ(demangler.Demangle("_ZNSt6vectorIiSaIiEE9push_backEOi"),
            "std::vector<int, std::allocator<int> >::push_back(int&&)");
  EXPECT_EQ(demangler.Demangle("_ZN3foo3barEv.constprop.0"), "foo::bar() [clone .constprop.0]");
  EXPECT_EQ(demangler.Demangle("_ZN3foo3barEi@plt"), "foo::bar(int)@plt");
}

TEST(DemangleTest, NamesOfRust) {
  Demangler demangler;
  EXPECT_EQ(demangler.Demangle("_RNvCs1_1m5hello"), "m::hello");
  EXPECT_EQ(demangler.Demangle("_RNvCs1_1m5hello@plt"), "m::hello@plt");
  const std::string hashed = "_ZN1m10_$LT$T$GT$3new17h0123456789abcdefE";
  EXPECT_EQ(demangler.Demangle(hashed), "m::<T>::new");
  EXPECT_EQ(demangler.Demangle(hashed + ".llvm.1234"), "m::<T>::new");
  EXPECT_EQ(demangler.Demangle(hashed + ".5882"), "m::<T>::new.5882");
}

TEST(DemangleTest, NamesOfD) {
  Demangler demangler;
  EXPECT_EQ(demangler.Demangle("_D3foo3barFiZv"), "foo.bar(int)");
  EXPECT_EQ(demangler.Demangle("_D3foo3barFiZv@plt"), "foo.bar(int)@plt");
  EXPECT_EQ(demangler.Demangle("_Dmain"), "D main");
}

TEST(DemangleTest, OtherNamesStayAsTheyAre) {
  Demangler demangler;
  for (const char* name :
       {"main", "_Z", "_ZN", "_start", "i", "_ZZZZZ", "_R3foo", "_Zz", "_DYNAMIC"})
    EXPECT_EQ(demangler.Demangle(name), name);
  EXPECT_EQ(demangler.Demangle("bad\xff"), "bad?");
}

// f(A, B<A, A>, B<that, that>, ...): each argument twice as long as the one before.
std::string DoublingName(int doublings) {
  constexpr char kDigits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string name = "_Z1f1A1BIS_S_E";
  for (int i = 1; i <= doublings; ++i)
    absl::StrAppend(&name, "S0_IS", std::string(1, kDigits[i]), "_S", std::string(1, kDigits[i]),
                    "_E");
  return name;
}

TEST(DemangleTest, NameThatStandsForMegabytesStaysMangled) {
  Demangler demangler;
  EXPECT_NE(demangler.Demangle(DoublingName(4)), DoublingName(4));
  EXPECT_LT(demangler.Demangle(DoublingName(4)).size(), 2000u);
  for (int doublings = 13; doublings <= 34; ++doublings)
    EXPECT_EQ(demangler.Demangle(DoublingName(doublings)), DoublingName(doublings));
}

TEST(DemangleTest, NameBeyondTheLimitStaysMangled) {
  Demangler demangler;
  const std::string name = absl::StrCat("_ZN5000", std::string(5000, 'a'), "3barEv");
  EXPECT_EQ(demangler.Demangle(name), name);
}

TEST(DemangleTest, EstimateIsNeverBelowTheText) {
  std::vector<std::string> names = {"_ZN3foo3barEi", "_ZNSt6vectorIiSaIiEE9push_backEOi",
                                    "_ZNSsC1Ev", "_Z1fyyyyy",
                                    "_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc"};
  for (int doublings = 1; doublings < 10; ++doublings) names.push_back(DoublingName(doublings));
  Demangler demangler;
  for (const std::string& name : names)
    EXPECT_GE(EstimatedDemangledBytes(name), demangler.Demangle(name).size()) << name;
}

}  // namespace
}  // namespace strobe::internal
