// The names of functions of D.
#pragma once

#include <string>
#include <string_view>

namespace strobe::internal {

// What a symbol "_D…" stands for (dlang.org/spec/abi.html), with its parameters and without what it
// returns, as in "std.stdio.File.rawRead!(char).rawRead(char[])". Empty if it is none, or exceeds a
// limit of MangledText.
std::string DName(std::string_view symbol);

}  // namespace strobe::internal
