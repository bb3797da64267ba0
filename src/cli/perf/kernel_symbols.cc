#include "kernel_symbols.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <sstream>
#include <utility>

#include "absl/strings/numbers.h"

namespace strobe::internal {

// "ffffffff81000000 T _text", and of modules "ffffffffc0001000 t function\t[module]".
KernelSymbols::KernelSymbols(std::string_view text) {
  while (!text.empty() && symbols_.size() < kMaxSymbols) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t space = line.find(' ');
    if (space == std::string_view::npos || line.size() < space + 4) continue;
    std::uint64_t address = 0;
    const std::string_view hex = line.substr(0, space);
    if (!absl::SimpleHexAtoi({hex.data(), hex.size()}, &address) || address == 0) continue;
    const char kind = line[space + 1];
    if (kind != 't' && kind != 'T' && kind != 'w' && kind != 'W') continue;
    std::string_view name = line.substr(space + 3);
    name = name.substr(0, std::min(name.find('\t'), name.size()));
    symbols_.push_back({address, static_cast<std::uint32_t>(names_.size()),
                        static_cast<std::uint32_t>(name.size())});
    names_ += name;
  }
  std::ranges::stable_sort(symbols_, {}, &Symbol::address);
}

std::shared_ptr<const KernelSymbols> KernelSymbols::Read(const std::string& path) {
  std::string text;
  if (!path.empty()) {
    std::ifstream file(path, std::ios::binary);
    std::ostringstream bytes;
    bytes << file.rdbuf();  // a file that cannot be read, such as a directory, has none
    text = std::move(bytes).str();
  }
  return std::make_shared<const KernelSymbols>(text);
}

std::string_view KernelSymbols::Find(std::uint64_t address) const {
  const auto after = std::ranges::upper_bound(symbols_, address, {}, &Symbol::address);
  return after == symbols_.begin() ? std::string_view() : NameOf(*std::prev(after));
}

bool KernelSymbols::Has(std::string_view name, std::uint64_t address) const {
  for (auto symbol = std::ranges::lower_bound(symbols_, address, {}, &Symbol::address);
       symbol != symbols_.end() && symbol->address == address; ++symbol) {
    if (NameOf(*symbol) == name) return true;
  }
  return false;
}

}  // namespace strobe::internal
