#include "strobe/core/module_map.h"

#include <algorithm>
#include <utility>

namespace strobe {

ModuleMap::ModuleMap(std::vector<Module> modules) {
  std::stable_sort(modules.begin(), modules.end(), [](const Module& a, const Module& b) { return a.start < b.start; });
  for (Module& module : modules) {
    if (module.limit <= module.start) continue;
    if (!modules_.empty() && module.start < modules_.back().limit) continue;
    modules_.push_back(std::move(module));
  }
}

std::optional<std::uint32_t> ModuleMap::Find(Address address) const {
  const auto after =
      std::upper_bound(modules_.begin(), modules_.end(), address, [](Address value, const Module& module) { return value < module.start; });
  if (after == modules_.begin() || address >= std::prev(after)->limit) return std::nullopt;
  return static_cast<std::uint32_t>(std::prev(after) - modules_.begin());
}

}  // namespace strobe
