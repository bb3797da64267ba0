// DWords: the words of D's ABI. In each list, no word begins with one before it: a reader takes the
// first that fits.
#pragma once

#include <array>
#include <string_view>
#include <utility>

namespace strobe::internal {

// What is mangled, and what it means.
using DWords = std::pair<std::string_view, std::string_view>;

inline constexpr std::array<DWords, 26> kBasicDTypes{
    {{"n", "typeof(null)"}, {"v", "void"},   {"g", "byte"},    {"h", "ubyte"},  {"s", "short"},
     {"t", "ushort"},       {"i", "int"},    {"k", "uint"},    {"l", "long"},   {"m", "ulong"},
     {"f", "float"},        {"d", "double"}, {"e", "real"},    {"o", "ifloat"}, {"p", "idouble"},
     {"j", "ireal"},        {"q", "cfloat"}, {"r", "cdouble"}, {"c", "creal"},  {"b", "bool"},
     {"a", "char"},         {"u", "wchar"},  {"w", "dchar"},   {"zi", "cent"},  {"zk", "ucent"},
     {"Nn", "noreturn"}}};
inline constexpr std::array<DWords, 4> kDTypeModifiers{
    {{"x", "const"}, {"y", "immutable"}, {"O", "shared"}, {"Ng", "inout"}}};
inline constexpr std::array<DWords, 6> kDConventions{{{"F", ""},
                                                      {"U", "extern(C) "},
                                                      {"W", "extern(Windows) "},
                                                      {"V", "extern(Pascal) "},
                                                      {"R", "extern(C++) "},
                                                      {"Y", "extern(Objective-C) "}}};
inline constexpr std::array<DWords, 10> kDAttributes{{{"Na", "pure"},
                                                      {"Nb", "nothrow"},
                                                      {"Nc", "ref"},
                                                      {"Nd", "@property"},
                                                      {"Ne", "@trusted"},
                                                      {"Nf", "@safe"},
                                                      {"Ni", "@nogc"},
                                                      {"Nj", "return"},
                                                      {"Nl", "scope"},
                                                      {"Nm", "@live"}}};
inline constexpr std::array<DWords, 6> kDParameterKinds{{{"M", "scope "},
                                                         {"Nk", "return "},
                                                         {"I", "in "},
                                                         {"J", "out "},
                                                         {"K", "ref "},
                                                         {"L", "lazy "}}};
// What compilers call functions that have no name.
inline constexpr std::array<DWords, 3> kUnnamedDFunctions{
    {{"__ctor", "this"}, {"__dtor", "~this"}, {"__postblit", "this(this)"}}};
// What compilers make of a type or a module.
inline constexpr std::array<DWords, 5> kMadeUpDNames{{{".__init", "initializer for "},
                                                      {".__Class", "ClassInfo for "},
                                                      {".__vtbl", "vtable for "},
                                                      {".__Interface", "Interface for "},
                                                      {".__ModuleInfo", "ModuleInfo for "}}};

}  // namespace strobe::internal
