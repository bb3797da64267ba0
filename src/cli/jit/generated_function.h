// GeneratedFunction: a function that compilers list for perf, as its source has it.
#pragma once

#include <string_view>

#include "strobe/core/symbols.h"

namespace strobe::internal {

// Python's trampolines (since 3.12: `python -X perf`), "py::name:/path/file.py", are the function
// `name` of that file. Other names stay as they are.
FunctionSymbol GeneratedFunction(std::string_view name);

}  // namespace strobe::internal
