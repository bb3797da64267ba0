#include "strobe/aggregate/module_history.h"

#include <algorithm>
#include <iterator>
#include <utility>

namespace strobe {

void ModuleHistory::Add(std::uint32_t generation, const ModuleMap& map) {
  if (!entries_.empty() && generation < last_generation_) return;
  Entry entry{generation, {}};
  entry.modules.reserve(map.modules().size());
  // Most modules are in the newest list, too. List and map are sorted by start.
  const std::span<const std::uint32_t> before = newest();
  std::size_t place = 0;
  for (const Module& module : map.modules()) {
    while (place < before.size() && modules_[before[place]].start < module.start) ++place;
    entry.modules.push_back(place < before.size() && modules_[before[place]] == module
                                ? before[place]
                                : Intern(module));
  }
  AddEntry(std::move(entry));
}

void ModuleHistory::Append(const ModuleHistory& later) {
  for (const Entry& other : later.entries_) {
    Entry entry{std::max(other.first_generation, last_generation_), {}};
    entry.modules.reserve(other.modules.size());
    for (const std::uint32_t module : other.modules)
      entry.modules.push_back(Intern(later.modules_[module]));
    AddEntry(std::move(entry));
  }
  last_generation_ = std::max(last_generation_, later.last_generation_);
}

void ModuleHistory::AddEntry(Entry entry) {
  const std::uint32_t generation = entry.first_generation;
  last_generation_ = generation;

  const auto by_start = [this](std::uint32_t a, std::uint32_t b) {
    return modules_[a].start < modules_[b].start;
  };
  if (!entries_.empty()) {
    Entry& newest = entries_.back();
    // Equal modules have equal indices, so the new list includes the newest list if it has the same
    // index at each start.
    std::size_t kept = 0;
    for (const std::uint32_t module : newest.modules) {
      const auto at =
          std::lower_bound(entry.modules.begin(), entry.modules.end(), module, by_start);
      if (at != entry.modules.end() && *at == module) ++kept;
    }
    if (kept == newest.modules.size()) {
      newest.modules = std::move(entry.modules);
      CountMemory();
      return;
    }
    if (newest.first_generation == generation) {
      newest.modules = std::move(entry.modules);
      DropUnused();
      return;
    }
  }
  entries_.push_back(std::move(entry));
  if (entries_.size() > kMaxGenerations) {
    MergeOldest();
    DropUnused();
  } else {
    CountMemory();
  }
}

std::optional<std::uint32_t> ModuleHistory::Find(std::uint32_t generation, Address address) const {
  if (entries_.empty()) return std::nullopt;
  const std::size_t at = EntryOf(generation);
  const std::optional<std::uint32_t> found = FindIn(entries_[at], address);
  return found || at + 1 == entries_.size() ? found : FindIn(entries_[at + 1], address);
}

bool ModuleHistory::WasUnloaded(std::uint32_t generation, Address address) const {
  const std::optional<std::uint32_t> found = Find(generation, address);
  return found && FindIn(entries_.back(), address) != found;
}

std::uint32_t ModuleHistory::Canonical(std::uint32_t generation) const {
  // A generation that is not known yet must not be mapped to an older one: its map may follow.
  if (entries_.empty() || generation > last_generation_) return generation;
  return entries_[EntryOf(generation)].first_generation;
}

void ModuleHistory::KeepNewest() {
  if (entries_.size() > 1) entries_.erase(entries_.begin(), std::prev(entries_.end()));
  DropUnused();
}

std::span<const std::uint32_t> ModuleHistory::newest() const {
  if (entries_.empty()) return {};
  return entries_.back().modules;
}

std::uint32_t ModuleHistory::Intern(const Module& module) {
  auto place = std::lower_bound(
      by_start_.begin(), by_start_.end(), module.start,
      [this](std::uint32_t other, Address value) { return modules_[other].start < value; });
  for (; place != by_start_.end() && modules_[*place].start == module.start; ++place) {
    if (modules_[*place] == module) return *place;
  }
  const auto index = static_cast<std::uint32_t>(modules_.size());
  modules_.push_back(module);  // first, so that every index has its module if memory runs out
  by_start_.insert(place, index);
  return index;
}

std::size_t ModuleHistory::EntryOf(std::uint32_t generation) const {
  const auto after = std::upper_bound(
      entries_.begin(), entries_.end(), generation,
      [](std::uint32_t value, const Entry& entry) { return value < entry.first_generation; });
  return after == entries_.begin() ? 0
                                   : static_cast<std::size_t>(std::prev(after) - entries_.begin());
}

std::optional<std::uint32_t> ModuleHistory::FindIn(const Entry& entry, Address address) const {
  const auto after = std::upper_bound(
      entry.modules.begin(), entry.modules.end(), address,
      [this](Address value, std::uint32_t module) { return value < modules_[module].start; });
  if (after == entry.modules.begin() || address >= modules_[*std::prev(after)].limit)
    return std::nullopt;
  return *std::prev(after);
}

void ModuleHistory::MergeOldest() {
  Entry& older = entries_[0];
  Entry& newer = entries_[1];
  std::vector<std::uint32_t> merged = newer.modules;
  for (const std::uint32_t index : older.modules) {
    const Module& module = modules_[index];
    const auto after = std::upper_bound(
        newer.modules.begin(), newer.modules.end(), module.start,
        [this](Address value, std::uint32_t other) { return value < modules_[other].start; });
    const bool overlaps =
        (after != newer.modules.end() && modules_[*after].start < module.limit) ||
        (after != newer.modules.begin() && modules_[*std::prev(after)].limit > module.start);
    if (!overlaps) merged.push_back(index);
  }
  if (merged.size() <= kMaxMergedModules) {
    std::sort(merged.begin(), merged.end(), [this](std::uint32_t a, std::uint32_t b) {
      return modules_[a].start < modules_[b].start;
    });
    newer.modules = std::move(merged);
  }
  newer.first_generation = older.first_generation;
  entries_.erase(entries_.begin());
}

void ModuleHistory::DropUnused() {
  constexpr std::uint32_t kUnused = 0xFFFFFFFF;
  std::vector<std::uint32_t> renumbered(modules_.size(), kUnused);
  for (const Entry& entry : entries_) {
    for (const std::uint32_t index : entry.modules) renumbered[index] = 0;
  }
  if (std::find(renumbered.begin(), renumbered.end(), kUnused) != renumbered.end()) {
    std::uint32_t next = 0;
    for (std::size_t i = 0; i < modules_.size(); ++i) {
      if (renumbered[i] == kUnused) continue;
      renumbered[i] = next;
      if (next != i) modules_[next] = std::move(modules_[i]);
      ++next;
    }
    modules_.resize(next);
    for (Entry& entry : entries_) {
      for (std::uint32_t& index : entry.modules) index = renumbered[index];
    }
    std::erase_if(by_start_, [&](std::uint32_t index) { return renumbered[index] == kUnused; });
    for (std::uint32_t& index : by_start_) index = renumbered[index];
  }
  CountMemory();
}

void ModuleHistory::CountMemory() {
  memory_bytes_ =
      modules_.capacity() * sizeof(Module) + by_start_.capacity() * sizeof(std::uint32_t);
  for (const Module& module : modules_)
    memory_bytes_ += module.path.capacity() + module.build_id.capacity();
  for (const Entry& entry : entries_)
    memory_bytes_ += sizeof(Entry) + entry.modules.capacity() * sizeof(std::uint32_t);
}

}  // namespace strobe
