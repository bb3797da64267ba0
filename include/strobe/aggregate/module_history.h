// The module maps of a period, so that an address is looked up in what was loaded when it was
// captured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "strobe/base/address.h"
#include "strobe/core/module_map.h"

namespace strobe {

// It belongs to one recording, and holds what the rows of that still refer to; what is loaded now,
// LoadedCode (runtime/loaded_code.h) owns.
//
// Each module is kept once, a generation is a list of indices. A generation that only adds modules
// to the one before replaces its list, because whatever could be looked up before is still where it
// was: so a program that only loads has one list, and its stacks one root.
class ModuleHistory {
 public:
  // Lists kept. Beyond it the two oldest become one, in which the newer wins where they overlap.
  static constexpr std::size_t kMaxGenerations = 256;
  // Modules that such a merged list may hold; beyond it only the newer's stay.
  static constexpr std::size_t kMaxMergedModules = 4096;

  // Generations rise; one older than the newest known is ignored, the newest may be given again.
  // Indices into modules() are valid until the next Add or KeepNewest.
  void Add(std::uint32_t generation, const ModuleMap& map);

  // The module that holds `address` in that generation's map or, if it lies in none, in the next
  // newer one: a record captured just after a module was loaded still carries the generation
  // before. An unknown generation is looked up in the nearest that is not newer, or else in the
  // oldest.
  [[nodiscard]] std::optional<std::uint32_t> Find(std::uint32_t generation, Address address) const;

  // Whether the module that Find returns is not of the newest list: what was loaded there is not
  // loaded any more.
  [[nodiscard]] bool HasGone(std::uint32_t generation, Address address) const;

  // The same number for generations that share a list.
  [[nodiscard]] std::uint32_t Canonical(std::uint32_t generation) const;

  // Forgets all but the newest list: for a new period.
  void KeepNewest();

  [[nodiscard]] const std::vector<Module>& modules() const { return modules_; }
  // Indices of the newest list, in the map's order; empty before the first Add.
  [[nodiscard]] std::span<const std::uint32_t> newest() const;
  [[nodiscard]] std::size_t memory_bytes() const { return memory_bytes_; }

 private:
  struct Entry {
    std::uint32_t first_generation = 0;  // stands for the generations from here to the next entry's
    std::vector<std::uint32_t> modules;  // sorted by start
  };

  std::uint32_t Intern(const Module& module);
  [[nodiscard]] std::size_t EntryOf(std::uint32_t generation) const;
  [[nodiscard]] std::optional<std::uint32_t> FindIn(const Entry& entry, Address address) const;
  void MergeOldest();
  void DropUnused();
  void CountMemory();

  std::vector<Module> modules_;
  std::vector<std::uint32_t> by_start_;  // all of modules_, for Intern
  std::vector<Entry> entries_;           // oldest first
  std::uint32_t last_generation_ = 0;
  std::size_t memory_bytes_ = 0;
};

}  // namespace strobe
