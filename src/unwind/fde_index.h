// FdeIndex: where the frame information of each function of a module lies, 8 bytes a function.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cfi_rows.h"
#include "eh_frame_reader.h"
#include "strobe/base/address.h"
#include "strobe/core/memory_reader.h"
#include "strobe/core/module_map.h"

namespace strobe::internal {

// Of one .eh_frame: in the module's memory, or in bytes of its own. `module` and `read` must
// outlive the index. If a call throws, the index is of no use.
class FdeIndex {
 public:
  // Frame information beyond this is not read. libLLVM-14's 100 MB of text have 9 MB.
  static constexpr std::uint64_t kMaxEhFrameBytes = std::uint64_t{1} << 28;

  FdeIndex(Architecture architecture, const Module& module, const AnyMemoryReader& read)
      : module_(&module), read_(&read), cies_(architecture) {}

  // Takes the linker's index from the .eh_frame_hdr at `header`. Returns false if there is none
  // that can be used.
  bool ReadSorted(Address header);
  // Makes the index of the .eh_frame at `eh_frame`, by reading all of its `bytes` bytes. False if
  // it ends neither there nor at a terminator: what it has may be cut.
  bool Scan(Address eh_frame, std::uint64_t bytes);
  // Makes the index of an .eh_frame that the module does not have in memory.
  void Scan(std::vector<std::uint8_t> eh_frame);

  // Leaves out the functions that `other` has.
  void Remove(const FdeIndex& other);

  // Adds the rows of the functions that have code from `first` to `limit`.
  void AddRows(Address first, Address limit, CfiRows& rows);

  [[nodiscard]] bool empty() const { return places_.empty(); }
  [[nodiscard]] std::size_t functions() const { return places_.size(); }
  // True if some memory could not be read, perhaps because the module was just being unloaded.
  [[nodiscard]] bool has_failed() const { return has_failed_; }
  [[nodiscard]] std::size_t memory_bytes() const {
    return places_.capacity() * sizeof(Place) + bytes_.capacity();
  }

 private:
  // One function: where its code begins, and where its FDE lies.
  struct Place {
    std::uint32_t offset = 0;  // from the start of the module's text
    std::int32_t fde = 0;      // from base_
  };

  static bool IsBefore(const Place& a, const Place& b) { return a.offset < b.offset; }
  [[nodiscard]] EhFrameReader Reader(std::size_t window_bytes) const {
    return bytes_.empty() ? EhFrameReader(*read_, window_bytes) : EhFrameReader(bytes_, base_);
  }
  bool ReadTable(Address table, std::uint64_t entries);
  bool ScanEntries(std::uint64_t bytes);
  void Add(Address function, std::int32_t fde);
  void Sort();
  [[nodiscard]] std::vector<Address> FdesOf(Address first, Address limit) const;

  const Module* module_;
  const AnyMemoryReader* read_;
  std::vector<std::uint8_t> bytes_;  // the .eh_frame, unless it is in the module's memory
  Address base_ = 0;
  std::vector<Place> places_;  // sorted by offset
  CieCache cies_;
  bool has_failed_ = false;
};

}  // namespace strobe::internal
