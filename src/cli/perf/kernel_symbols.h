// KernelSymbols: the functions of the kernel, as /proc/kallsyms lists them.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace strobe::internal {

class KernelSymbols {
 public:
  // What is beyond is left out.
  static constexpr std::size_t kMaxSymbols = std::size_t{1} << 21;

  // `text` is in the format of /proc/kallsyms. Without the right to see addresses, the kernel says
  // that all are 0: there are then no symbols.
  explicit KernelSymbols(std::string_view text);
  // Of the file at `path`; none if it cannot be read, or `path` is empty. Takes 0.1 s of CPU time.
  static std::shared_ptr<const KernelSymbols> Read(const std::string& path);

  // The function that holds `address`; empty if there is none. Valid as long as this object.
  [[nodiscard]] std::string_view Find(std::uint64_t address) const;
  // True if a symbol of that name is at `address`: the list is then that of the kernel that was
  // profiled, loaded at the same address.
  [[nodiscard]] bool Has(std::string_view name, std::uint64_t address) const;

 private:
  struct Symbol {
    std::uint64_t address;
    std::uint32_t name;  // in names_
    std::uint32_t name_bytes;
  };

  [[nodiscard]] std::string_view NameOf(const Symbol& symbol) const {
    return std::string_view(names_).substr(symbol.name, symbol.name_bytes);
  }

  std::vector<Symbol> symbols_;  // sorted by address
  std::string names_;
};

}  // namespace strobe::internal
