// FunctionList: the functions of one profile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "demangle.h"
#include "strobe/core/symbols.h"

namespace strobe::internal {

// Symbols::functions without repetition. Texts may be anything; those of the list are valid UTF-8.
class FunctionList {
 public:
  // The index of a function that has a symbol. `file` and `line` tell where it is defined; empty
  // and 0 if unknown.
  std::uint32_t Resolved(std::string_view system_name, std::string_view file, std::uint32_t line);
  // The index of code without a symbol.
  std::uint32_t Unresolved(const std::string& name, std::string_view file);

  // The texts of resolved functions, as the images have them.
  [[nodiscard]] std::size_t name_bytes() const { return name_bytes_; }
  std::vector<FunctionSymbol> Take() { return std::move(functions_); }

 private:
  Demangler demangler_;
  std::size_t name_bytes_ = 0;
  std::vector<FunctionSymbol> functions_;
  std::unordered_map<std::string, std::uint32_t> resolved_;
  std::unordered_map<std::string, std::uint32_t> unresolved_;
};

}  // namespace strobe::internal
