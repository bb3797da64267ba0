// ModuleHistory: the module maps of a period, so that an address is looked up in the modules that
// were loaded when it was captured.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "strobe/base/address.h"
#include "strobe/core/module_map.h"

namespace strobe {

// A history belongs to one recording, and holds the modules that the recording's rows refer to.
// LoadedCode (runtime/code/loaded_code.h) owns the modules that are loaded now.
//
// Each module is stored once. A generation is a list of indices. A generation that only adds
// modules replaces the previous generation's list, because every earlier lookup still gives the
// same module. So a program that only loads modules has one list, and its stacks have one root.
class ModuleHistory {
 public:
  // The most lists. Beyond it, the two oldest are merged. If modules overlap, the newer list's
  // stays.
  static constexpr std::size_t kMaxGenerations = 256;
  // The most modules of a merged list. If it would have more, only the newer list's modules stay.
  static constexpr std::size_t kMaxMergedModules = 4096;

  // Generations must rise: one older than the newest known is ignored. The newest may be given
  // again. Indices into modules() are valid until the next Add or KeepNewest.
  void Add(std::uint32_t generation, const ModuleMap& map);

  // The module that holds `address` in the map of `generation` or, if there is none, in the next
  // newer map: a record captured just after a module was loaded still has the previous generation.
  // For an unknown generation, the nearest older one is used or, if there is none, the oldest.
  [[nodiscard]] std::optional<std::uint32_t> Find(std::uint32_t generation, Address address) const;

  // True if the module that Find returns is not in the newest list: it is no longer loaded.
  [[nodiscard]] bool WasUnloaded(std::uint32_t generation, Address address) const;

  // The same number for generations that share a list.
  [[nodiscard]] std::uint32_t Canonical(std::uint32_t generation) const;

  // Adds the lists of a later period of the same recording, which began with the newest of these.
  void Append(const ModuleHistory& later);

  // Forgets all lists but the newest, for a new period.
  void KeepNewest();

  [[nodiscard]] const std::vector<Module>& modules() const { return modules_; }
  // Indices of the newest list, in the map's order; empty before the first Add.
  [[nodiscard]] std::span<const std::uint32_t> newest() const;
  [[nodiscard]] std::size_t memory_bytes() const { return memory_bytes_; }

 private:
  struct Entry {
    std::uint32_t first_generation = 0;  // of those up to the next entry's
    std::vector<std::uint32_t> modules;  // sorted by start
  };

  void AddEntry(Entry entry);
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
