#include "generated_function.h"

#include <string>

#include "strobe/core/thread_info.h"

namespace strobe::internal {

FunctionSymbol GeneratedFunction(std::string_view name) {
  constexpr std::string_view kPython = "py::";
  FunctionSymbol function;
  function.system_name = ValidUtf8(name);
  function.name = function.system_name;
  if (!name.starts_with(kPython)) return function;
  name.remove_prefix(kPython.size());
  const std::size_t end = name.find(':');
  if (end == std::string_view::npos || end == 0) return function;
  function.name = ValidUtf8(name.substr(0, end));
  function.file = ValidUtf8(name.substr(end + 1));
  return function;
}

}  // namespace strobe::internal
