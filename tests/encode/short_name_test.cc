#include "strobe/encode/short_name.h"

#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace strobe {
namespace {

struct Case {
  std::string_view full_name, short_name;
};

void ExpectEach(std::initializer_list<Case> cases) {
  for (const Case& c : cases) EXPECT_EQ(ShortFunctionName(c.full_name), c.short_name);
}

TEST(ShortNameTest, ParametersQualifiersAndTemplateArgumentsGo) {
  ExpectEach({
      {"main", "main"},
      {"ns::Busy(int, std::vector<int> const&)", "ns::Busy"},
      {"ns::T::Get() const", "ns::T::Get"},
      {"ns::T::Take() &&", "ns::T::Take"},
      {"ns::T::Take() const &", "ns::T::Take"},
      {"void ns::Loop<int>(int)", "ns::Loop"},
      {"std::vector<int, std::allocator<int> >::push_back(int const&)", "std::vector::push_back"},
      {"std::vector<int,std::allocator<int>>::push_back", "std::vector::push_back"},
      {"f(void (*)(int, char), int (&) [3])", "f"},
      {"ns::T<(ns::Kind)1, -3l, true>::f()", "ns::T::f"},
      {"ns::T<((5)>(3))>::f()", "ns::T::f"},
      {"ns::T<((5)<(3))>::f()", "ns::T::f"},
      {"ns::T::T(int)", "ns::T::T"},
      {"ns::T::~T()", "ns::T::~T"},
      {"f(int) requires C<int>", "f"},
  });
}

TEST(ShortNameTest, ReturnTypesGo) {
  ExpectEach({
      {"unsigned long long const& ns::f<int>(int)", "ns::f"},
      {"std::enable_if<true, int>::type ns::f<int>(int)", "ns::f"},
      {"decltype ({parm#1}+{parm#2}) ns::Add<int, int>(int, int)", "ns::Add"},
      {"decltype(auto) ns::f<int>()", "ns::f"},
      {"auto (anonymous namespace)::f<int>(int)", "(anonymous namespace)::f"},
  });
}

TEST(ShortNameTest, AReturnedPointerToAFunctionKeepsTheWholeName) {
  ExpectEach({{"void (*ns::f<int>(int))(char)", "void (*ns::f<int>(int))(char)"}});
}

TEST(ShortNameTest, OperatorsStay) {
  ExpectEach({
      {"std::function<void (int)>::operator()(int) const", "std::function::operator()"},
      {"std::function<void (int)>::operator()", "std::function::operator()"},
      {"std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)",
       "std::operator<<"},
      {"bool ns::operator< <int>(ns::T<int>, ns::T<int>)", "ns::operator<"},
      {"ns::T::operator<=>(ns::T const&) const", "ns::T::operator<=>"},
      {"bool ns::operator==<int>(ns::T<int>, ns::T<int>)", "ns::operator=="},
      {"ns::T::operator->() const", "ns::T::operator->"},
      {"ns::T::operator->*(int)", "ns::T::operator->*"},
      {"ns::T::operator[](unsigned long)", "ns::T::operator[]"},
      {"ns::T::operator,(int)", "ns::T::operator,"},
      {"ns::T::operator bool() const", "ns::T::operator bool"},
      {"ns::T::operator std::vector<int>*() const", "ns::T::operator std::vector*"},
      {"ns::T::operator (anonymous namespace)::U() const",
       "ns::T::operator (anonymous namespace)::U"},
      {"operator new(unsigned long)", "operator new"},
      {"operator delete[](void*, unsigned long)", "operator delete[]"},
      {"operator\"\" _km(long double)", "operator\"\" _km"},
      {"ns::T::operator co_await() const", "ns::T::operator co_await"},
      {"ns::operators(int)", "ns::operators"},
      {"ns::my_operator<int>(int)", "ns::my_operator"},
  });
}

TEST(ShortNameTest, LambdasAndLocalNamesKeepTheirPlace) {
  ExpectEach({
      {"(anonymous namespace)::Run(int)::{lambda(int)#1}::operator()(int) const",
       "(anonymous namespace)::Run::{lambda#1}::operator()"},
      {"auto ns::f<int>(int) const::{lambda(auto:1)#2}::operator()<int>(int) const",
       "ns::f::{lambda#2}::operator()"},
      {"ns::T::f() const::{lambda()#1}::operator()() const::{lambda(int)#3}::_FUN(int)",
       "ns::T::f::{lambda#1}::operator()::{lambda#3}::_FUN"},
      {"f()::'lambda'(int)::operator()(int) const", "f::'lambda'::operator()"},
      {"f(int)::Local::g()", "f::Local::g"},
      {"ns::{unnamed type#1}::g()", "ns::{unnamed type#1}::g"},
  });
}

TEST(ShortNameTest, TagsClonesAndStubs) {
  ExpectEach({
      {"ns::Name[abi:cxx11](int)", "ns::Name"},
      {"std::string ns::Name[abi:cxx11]<int>(int)", "ns::Name"},
      {"Parse(char const*) [clone .part.0]", "Parse"},
      {"Parse(char const*) [clone .isra.0] [clone .cold]", "Parse"},
      {"Parse(char const*) (.constprop.0)", "Parse"},
      {"parse.part.0", "parse"},
      {"parse.constprop.0.isra.12.cold", "parse"},
      {"parse.llvm.1234567890", "parse"},
      {"parse.cold", "parse"},
      {"parse.part", "parse.part"},
      {".cold", ".cold"},
      {"ns::f(int)@plt", "ns::f@plt"},
      {"memcpy@plt", "memcpy@plt"},
      {"non-virtual thunk to ns::T<int>::f(int)", "non-virtual thunk to ns::T::f"},
      {"virtual thunk to ns::T::f() const", "virtual thunk to ns::T::f"},
      {"TLS wrapper function for ns::value", "TLS wrapper function for ns::value"},
  });
}

TEST(ShortNameTest, RustLosesHashesAndGenericArguments) {
  ExpectEach({
      {"core::fmt::write::h0123456789abcdef", "core::fmt::write"},
      {"core::fmt::write::hXYZ3456789abcdef", "core::fmt::write::hXYZ3456789abcdef"},
      {"alloc::vec::Vec<T,A>::push", "alloc::vec::Vec::push"},
      {"core::iter::sum::<u64>", "core::iter::sum"},
      {"<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop",
       "<alloc::vec::Vec<T> as core::ops::drop::Drop>::drop"},
      {"app::main::{{closure}}::h0123456789abcdef", "app::main::{{closure}}"},
      {"app::run::{closure#0}", "app::run::{closure#0}"},
      {"_RNvCs1234_7mycrate3foo", "_RNvCs1234_7mycrate3foo"},
  });
}

TEST(ShortNameTest, DLosesParametersAndTemplateArguments) {
  ExpectEach({
      {"D main", "D main"},
      {"std.stdio.File.rawRead!(char).rawRead(char[])", "std.stdio.File.rawRead.rawRead"},
      {"foo.bar!(foo.A!(int), \"x y\").Bar.baz(const(char)[]) const", "foo.bar.Bar.baz"},
      {"foo.bar(void() delegate).__lambda1(int) shared", "foo.bar.__lambda1"},
      {"foo.Bar.this()", "foo.Bar.this"},
      {"foo.Bar.~this()", "foo.Bar.~this"},
      {"foo.bar() inout.__lambda1()", "foo.bar.__lambda1"},
      {"non-virtual thunk to foo.Bar.baz(int)", "non-virtual thunk to foo.Bar.baz"},
  });
}

TEST(ShortNameTest, MicrosoftsNames) {
  ExpectEach({
      {"`anonymous namespace'::Run", "`anonymous namespace'::Run"},
      {"main::<lambda_1>::operator()", "main::<lambda_1>::operator()"},
      {"std::vector<int,std::allocator<int> >::_Emplace<int const &>", "std::vector::_Emplace"},
  });
}

TEST(ShortNameTest, OtherTextsStay) {
  for (const std::string_view name : {"runtime.gopark",
                                      "net/http.(*conn).serve",
                                      "main.(*List[go.shape.int]).Push",
                                      "main.Map[go.shape.int]",
                                      "main.main.func1",
                                      "-[Window drawRect:]",
                                      "[libz.so.1]",
                                      "[truncated]",
                                      "[no unwind info]",
                                      "libz.so.1+0x1234",
                                      "0x7f0012345678",
                                      "LazyCompile:~run /app/a b.js:1:2",
                                      "<module> of a.py",
                                      "f(",
                                      "f)",
                                      "f<int",
                                      "a>b",
                                      "f}",
                                      "(",
                                      "()",
                                      " ",
                                      "f ",
                                      "operator",
                                      "operator ",
                                      "{",
                                      "`x"}) {
    EXPECT_EQ(ShortFunctionName(name), name);
  }
  EXPECT_EQ(ShortFunctionName(""), "");
}

TEST(ShortNameTest, DeepAndLongNamesTakeLinearTime) {
  const std::string deep(100'000, '<');
  EXPECT_EQ(ShortFunctionName("f" + deep), "f" + deep);
  std::string lambdas = "f";
  for (int i = 0; i < 20'000; ++i) lambdas += "(int)::{lambda()#1}";
  EXPECT_LT(ShortFunctionName(lambdas).size(), lambdas.size());
}

}  // namespace
}  // namespace strobe
