#include "strobe/core/module_map.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace strobe {

bool Overlaps(std::span<const Module> modules, Address start, Address limit) {
  const auto after =
      std::lower_bound(modules.begin(), modules.end(), start,
                       [](const Module& module, Address value) { return module.start < value; });
  return (after != modules.end() && after->start < limit) ||
         (after != modules.begin() && std::prev(after)->limit > start);
}

ModuleMap::ModuleMap(std::vector<Module> modules) {
  std::stable_sort(modules.begin(), modules.end(),
                   [](const Module& a, const Module& b) { return a.start < b.start; });
  for (Module& module : modules) {
    if (module.limit <= module.start) continue;
    if (!modules_.empty() && module.start < modules_.back().limit) continue;
    modules_.push_back(std::move(module));
  }
}

void ModuleMap::ReplaceGenerated(std::span<const Module> code) {
  std::erase_if(modules_,
                [](const Module& module) { return module.kind == ModuleKind::kGeneratedCode; });
  const std::size_t images = modules_.size();
  for (const Module& range : code) {
    if (!Overlaps(std::span(modules_).first(images), range.start, range.limit))
      modules_.push_back(range);
  }
  std::inplace_merge(modules_.begin(), modules_.begin() + static_cast<std::ptrdiff_t>(images),
                     modules_.end(),
                     [](const Module& a, const Module& b) { return a.start < b.start; });
}

std::optional<std::uint32_t> ModuleMap::Find(Address address) const {
  const auto after =
      std::upper_bound(modules_.begin(), modules_.end(), address,
                       [](Address value, const Module& module) { return value < module.start; });
  if (after == modules_.begin() || address >= std::prev(after)->limit) return std::nullopt;
  return static_cast<std::uint32_t>(std::prev(after) - modules_.begin());
}

}  // namespace strobe
