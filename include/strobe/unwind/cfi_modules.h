// CfiModules: compiles the call frame information of the loaded modules, and keeps it current. Control plane.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include "strobe/base/address.h"
#include "strobe/core/module_map.h"
#include "strobe/unwind/cfi_compiler.h"
#include "strobe/unwind/unwind_table.h"

namespace strobe {

class CfiModules {
 public:
  // Copies memory of the profiled process; returns how many bytes could be read, from the front. It never faults: a module may be unloaded
  // at any moment.
  using ReadMemory = std::function<std::size_t(Address address, std::span<std::uint8_t> bytes)>;
  // Frame information of one module beyond this is not read. libLLVM-14's 100 MB of text have 9 MB.
  static constexpr std::size_t kMaxEhFrameBytes = std::size_t{1} << 28;

  CfiModules(CfiArchitecture architecture, ReadMemory read) : architecture_(architecture), read_(std::move(read)) {}

  // A snapshot for `map`: tables of modules that stay are used again, new ones are compiled, those of modules that went are let go.
  std::shared_ptr<const UnwindModules> Update(const ModuleMap& map);

  // Of the modules of the last snapshot.
  [[nodiscard]] const CfiStatistics& statistics() const { return statistics_; }

 private:
  struct Known {
    Module module;
    std::shared_ptr<const UnwindTable> table;
    CfiStatistics statistics;
  };

  Known Compile(const Module& module) const;

  const CfiArchitecture architecture_;
  const ReadMemory read_;
  std::map<Address, Known> known_;  // by start
  CfiStatistics statistics_;
};

}  // namespace strobe
