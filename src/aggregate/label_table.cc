#include "strobe/aggregate/label_table.h"

#include <string>
#include <utility>

#include "absl/hash/hash.h"

namespace strobe {

LabelTable::LabelTable(std::size_t limit_bytes) : budget_(limit_bytes) {
  sets_.emplace_back();
  sets_.push_back(LabelSet({{"labels", std::string("[overflow]")}}));
}

std::uint64_t LabelTable::Intern(LabelSet set) {
  if (set.empty()) return kNoContext;
  const std::uint64_t hash = absl::HashOf(set);
  const std::lock_guard lock(mutex_);
  const std::uint32_t found = ids_.Find(hash, [&](std::uint32_t id) { return sets_[id] == set; });
  if (found != IdTable::kNone) return found;
  const auto number = static_cast<std::uint32_t>(sets_.size());
  const std::size_t bytes = set.memory_bytes();
  if (!ids_.MakeRoom(budget_, Admission::kWithinBudget) ||
      !AllocateFrom(budget_, bytes, Admission::kWithinBudget,
                    [&] { sets_.push_back(std::move(set)); }))
    return kOverflowContext;
  ids_.Insert(hash, number);
  return number;
}

const LabelSet& LabelTable::operator[](std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  return sets_[number < sets_.size() ? number : kOverflowContext];
}

}  // namespace strobe
