#include "function_table.h"

#include <algorithm>
#include <cstring>
#include <utility>

namespace strobe::internal {
namespace {

// How many symbols before the nearest one are checked for a range that covers the address.
// Functions within functions are rare.
constexpr std::size_t kMaxNesting = 8;

// True if `a` is the better known of two names for the same code: fewer leading underscores, then
// fewer letters.
bool IsBetterName(std::string_view a, std::string_view b) {
  const auto underscores = [](std::string_view name) {
    return std::min(name.find_first_not_of('_'), name.size());
  };
  if (underscores(a) != underscores(b)) return underscores(a) < underscores(b);
  if (a.size() != b.size()) return a.size() < b.size();
  return a < b;
}

}  // namespace

FunctionTable::FunctionTable(std::vector<Function> functions, std::vector<char> names)
    : functions_(std::move(functions)), names_(std::move(names)) {
  if (names_.empty() || names_.back() != '\0') names_.push_back('\0');
  std::sort(functions_.begin(), functions_.end(), [](const Function& a, const Function& b) {
    return a.address != b.address ? a.address < b.address : a.end > b.end;
  });
  std::size_t kept = 0;
  for (const Function& function : functions_) {
    if (kept == 0 || functions_[kept - 1].address != function.address) {
      functions_[kept++] = function;
    } else if (functions_[kept - 1].end == function.end &&
               IsBetterName(NameOf(function), NameOf(functions_[kept - 1]))) {
      functions_[kept - 1] = function;
    }
  }
  functions_.resize(kept);
  functions_.shrink_to_fit();
}

std::string_view FunctionTable::NameOf(const Function& function) const {
  const std::size_t max_bytes = std::min(names_.size() - function.name, kMaxNameBytes);
  return {names_.data() + function.name, strnlen(names_.data() + function.name, max_bytes)};
}

std::string_view FunctionTable::Find(std::uint64_t address) const {
  const Function* const function = FindFunction(address);
  return function == nullptr ? std::string_view() : NameOf(*function);
}

const FunctionTable::Function* FunctionTable::FindFunction(std::uint64_t address) const {
  auto after = std::upper_bound(
      functions_.begin(), functions_.end(), address,
      [](std::uint64_t value, const Function& function) { return value < function.address; });
  for (std::size_t i = 0; i < kMaxNesting && after != functions_.begin(); ++i) {
    --after;
    if (address < after->end) return &*after;
  }
  return nullptr;
}

}  // namespace strobe::internal
