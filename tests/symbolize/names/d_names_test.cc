// Names as GDC 12 and LDC 1.30 write them, the examples of the D ABI, and hostile names.
#include "../../../src/symbolize/names/d_names.h"

#include <cstddef>
#include <string>
#include <string_view>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(DName, IsTheQualifiedNameWithParameters) {
  EXPECT_EQ(DName("_Dmain"), "D main");
  EXPECT_EQ(DName("_D3std5stdio4File5flushMFNeZv"), "std.stdio.File.flush()");
  EXPECT_EQ(DName("_D3std3xml3Tag8toStringMxFNfZAya"), "std.xml.Tag.toString() const");
  EXPECT_EQ(DName("_D3foo3barMOxFZv"), "foo.bar() shared const");
  EXPECT_EQ(DName("_D3foo3barFiAyaYv"), "foo.bar(int, immutable(char)[], ...)");
  EXPECT_EQ(DName("_D3foo3barFAiXv"), "foo.bar(int[]...)");
  EXPECT_EQ(DName("_D3foo3barFZ3bazMxFiZv"), "foo.bar().baz(int) const");
  EXPECT_EQ(DName("_D3std5ascii7lettersyAa"), "std.ascii.letters");
  // A place within a function has no name.
  EXPECT_EQ(DName("_D3foo3barFZ4__S13bazFZv"), "foo.bar().baz()");
}

TEST(DName, HasTypes) {
  EXPECT_EQ(DName("_D1m1fFhG3kHAaiPvNhG4fZv"),
            "m.f(ubyte, uint[3], int[char[]], void*, __vector(float[4]))");
  EXPECT_EQ(DName("_D1m1fFC1m1CS1m1SE1m1EB2aiZv"), "m.f(m.C, m.S, m.E, Tuple!(char, int))");
  EXPECT_EQ(DName("_D1m1fFxaxAaNgaONgaNnzizkZv"),
            "m.f(const(char), const(char[]), inout(char), shared(inout(char)), noreturn, cent, "
            "ucent)");
  EXPECT_EQ(DName("_D1m1fFIaJbKcLdMeNkMfZv"),
            "m.f(in char, out bool, ref creal, lazy double, scope real, return scope float)");
  EXPECT_EQ(DName("_D1m1fFPUNaiYvDxFNbNiZAaZv"),
            "m.f(extern(C) void(int, ...) pure function, char[]() nothrow @nogc delegate const)");
}

TEST(DName, HasTemplateArguments) {
  EXPECT_EQ(DName("_D1m__T1fTaVii3Z1fFZv"), "m.f!(char, 3).f()");
  EXPECT_EQ(DName("_D1m__U1fS1n1gX3abcHTiZ1fFZv"), "m.f!(n.g, abc, int).f()");
  EXPECT_EQ(DName("_D1m__T1fVAyaa3_616263VAiA2i1N2VHiiA1i3i4VS1m1SS2i5nVPvnZv"),
            "m.f!(\"abc\", [1, -2], [3:4], m.S(5, null), null)");
  EXPECT_EQ(DName("_D1m__T1fS_D1n1gFiZvVPFZvf_D1n1hFZvZv"), "m.f!(n.g(int), n.h())");
  // As compilers wrote templates before 2017.
  EXPECT_EQ(DName("_D1m9__T1fTaZ11fFZv"), "");
  EXPECT_EQ(DName("_D1m10__T1fTaTiZ1fFZv"), "m.f!(char, int).f()");
}

TEST(DName, RefersBack) {
  EXPECT_EQ(DName("_D3std5range__T6ChunksTAhZQl6lengthMFNaNbNdNiNfZm"),
            "std.range.Chunks!(ubyte[]).Chunks.length()");
  EXPECT_EQ(DName("_D3std7variant16VariantException6__ctorMFC8TypeInfoQkZCQCbQCaQBv"),
            "std.variant.VariantException.this(TypeInfo, TypeInfo)");
  // What looks like the parameters of a function in Pascal is the next argument.
  EXPECT_EQ(DName("_D3std4conv__T7enumRepTyAaTEQBa12experimental6logger4core8LogLevelVQBoi128ZQCjy"
                  "QCd"),
            "std.conv.enumRep!(immutable(char[]), std.experimental.logger.core.LogLevel, "
            "128).enumRep");
  // A whole function type, and what the function returns with it.
  EXPECT_EQ(DName("_D3std11concurrency14FiberScheduler6createMFNbDFZvZ4wrapMQk"),
            "std.concurrency.FiberScheduler.create(void() delegate).wrap()");
}

TEST(DName, SaysWhatCompilersMake) {
  EXPECT_EQ(DName("_D3std4json13JSONException6__initZ"), "initializer for std.json.JSONException");
  EXPECT_EQ(DName("_D3foo3Bar7__ClassZ"), "ClassInfo for foo.Bar");
  EXPECT_EQ(DName("_D3foo3Bar6__vtblZ"), "vtable for foo.Bar");
  EXPECT_EQ(DName("_D3foo3Bar11__InterfaceZ"), "Interface for foo.Bar");
  EXPECT_EQ(DName("_D3foo12__ModuleInfoZ"), "ModuleInfo for foo");
  EXPECT_EQ(DName("_D3foo3Bar6__dtorMFZv"), "foo.Bar.~this()");
  EXPECT_EQ(DName("_D3foo3Bar10__postblitMOFNaNbZv"), "foo.Bar.this(this) shared");
  EXPECT_EQ(DName("_DThn16_3std6socket9TcpSocket5closeMFZv"),
            "non-virtual thunk to std.socket.TcpSocket.close()");
  EXPECT_EQ(DName("_DTi16_D3std6socket9TcpSocket5closeMFZv"),
            "non-virtual thunk to std.socket.TcpSocket.close()");
  EXPECT_EQ(DName("_D3foo3barFZv.cold"), "foo.bar().cold");
}

TEST(DName, IsEmptyForOthers) {
  for (const char* name : {"",
                           "_D",
                           "_Dx",
                           "_DYNAMIC",
                           "main",
                           "_ZN1m5helloE",
                           "_D3foo",
                           "_D9foo",
                           "_D3foo3barF",
                           "_D3foo3barFZvX",
                           "_D3fooQa",
                           "_D3fooQz",
                           "_D3foo3barFQaZv",
                           "_D3foo3barFQBZv",
                           "_D3foo__T3barTQfZv",
                           "_D3foo3barFiQ\xff",
                           "_D3foo__T3barVAyaa9_61Zv",
                           "_DTh_3foo",
                           "_D99999999999999999999foo",
                           "_D3foo__T3barVAiA4000000000i1Zv"})
    EXPECT_EQ(DName(name), "") << name;
  for (const char part : {'A', 'P', 'x', 'D', 'F', 'H', 'C'})
    EXPECT_EQ(DName("_D1m1fF" + std::string(100'000, part) + "iZv"), "") << part;
}

// A reference at `place` of what stands behind "_D" to `target`.
std::string Reference(std::size_t place, std::size_t target) {
  std::size_t distance = place - target;
  std::string digits(1, static_cast<char>('a' + distance % 26));
  while ((distance /= 26) > 0) digits.insert(0, 1, static_cast<char>('A' + distance % 26));
  return "Q" + digits;
}

// A function with parameters each of which is a pair of the one before: twice as long.
std::string DoublingDName(int doublings) {
  std::string name = "1m1fF";
  std::size_t previous = name.size();
  name += "B2aa";
  for (int i = 0; i < doublings; ++i) {
    const std::size_t begin = name.size();
    name += "B2";
    name += Reference(name.size(), previous);
    name += Reference(name.size(), previous);
    previous = begin;
  }
  return "_D" + name + "Zv";
}

TEST(DName, IsEmptyIfItSaysTooMuch) {
  EXPECT_EQ(DName(DoublingDName(1)),
            "m.f(Tuple!(char, char), Tuple!(Tuple!(char, char), Tuple!(char, char)))");
  EXPECT_NE(DName(DoublingDName(8)), "");
  for (int doublings = 16; doublings <= 60; ++doublings)
    EXPECT_EQ(DName(DoublingDName(doublings)), "");
}

}  // namespace
}  // namespace strobe::internal
