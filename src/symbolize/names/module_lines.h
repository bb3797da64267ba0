// ModuleLines: the source lines of one module's code, as far as they have been looked up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "../dwarf/dwarf_index.h"
#include "strobe/core/module_map.h"
#include "strobe/symbolize/image_symbolizer.h"
#include "strobe/symbolize/symbol_files.h"

namespace strobe::internal {

// Keeps what it has found, so that the next profile asks for new addresses only. Between two calls
// it has no file open, and of the debug information itself only the index of its units.
class ModuleLines {
 public:
  // One function at an address, innermost first; texts are indices for TextOf.
  struct Line {
    std::uint32_t function = 0;
    std::uint32_t file = 0;
    std::uint32_t line = 0;
    std::uint32_t column = 0;
    std::uint32_t function_line = 0;
  };

  // Looks up those of `addresses`, which are sorted, that are not known yet. Stops when `is_late`
  // returns true, but not before it has found something. A unit of debug information of more than
  // `options.cache_bytes` is not read. Returns true if the module has debug information and all
  // addresses are known.
  bool LookUp(const Module& module, std::span<const std::uint64_t> addresses,
              const SymbolFiles& files, const ImageSymbolizerOptions& options,
              const std::function<bool()>& is_late);

  // Empty if the address is not known, or if there is nothing to know.
  [[nodiscard]] std::span<const Line> Find(std::uint64_t address) const;
  [[nodiscard]] std::string_view TextOf(std::uint32_t index) const { return *texts_[index]; }

  // Of what is kept.
  [[nodiscard]] std::size_t memory_bytes() const;

 private:
  struct Place {
    std::uint32_t begin = 0;
    std::uint32_t count = 0;
  };

  // What was found in another file is not valid any more.
  void BeginFile(const std::string& identity);
  bool LookUpInSystem(const Module& module, std::span<const std::uint64_t> addresses,
                      const SymbolFiles& files, const SymbolSearch& search,
                      const std::function<bool()>& is_late);
  void Add(std::uint64_t address, std::span<const SourceFrame> frames);
  std::uint32_t NumberOf(const std::string& text);

  std::string identity_;  // of the file with the debug information
  DwarfIndex index_;

  std::unordered_map<std::uint64_t, Place> places_;  // by address
  std::vector<Line> lines_;
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<const std::string*> texts_;  // the keys of numbers_
  std::size_t text_bytes_ = 0;
};

}  // namespace strobe::internal
