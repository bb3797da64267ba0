// ShortFunctionName: a function's name as people say it.
#pragma once

#include <string>
#include <string_view>

namespace strobe {

// The name of a function without parameters, template arguments, return type, ABI tags and the
// compiler's suffixes of clones:
//
//   void ns::Loop<int>(int)                                  ns::Loop
//   std::function<void (int)>::operator()(int) const         std::function::operator()
//   (anonymous namespace)::Run(int)::{lambda(int)#1}::operator()(int) const
//                                               (anonymous namespace)::Run::{lambda#1}::operator()
//   core::fmt::write::h0123456789abcdef                      core::fmt::write
//   Parse(char const*) [clone .part.0]                       Parse
//
// Names of Go, of C, of code without a symbol ("[libz.so.1]", "libz.so.1+0x12"), and whatever does
// not read as C++ or Rust come back unchanged. So overloads share a short name; the full name tells
// them apart. The result is never empty unless `full_name` is, never longer than `full_name`, and
// valid UTF-8 if `full_name` is. Takes time in proportion to the name's length.
std::string ShortFunctionName(std::string_view full_name);

}  // namespace strobe
