// EhFrameReader: the entries of an .eh_frame, wherever they lie, and the CIEs that its FDEs name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "cfi_state.h"
#include "dwarf_reader.h"
#include "strobe/base/address.h"
#include "strobe/core/memory_reader.h"

namespace strobe::internal {

// One entry: a CIE, an FDE, or the terminator.
struct EhFrameEntry {
  bool is_terminator = false;
  Address cie = 0;   // that an FDE names; 0 for a CIE
  Address next = 0;  // where the following entry begins
  DwarfReader body;  // behind the id; valid until the reader is asked for another entry
};

class EhFrameReader {
 public:
  // No entry of a real file is nearly as long.
  static constexpr std::size_t kMaxEntryBytes = std::size_t{1} << 20;

  // Entries in `bytes`, which lie at `address`.
  EhFrameReader(std::span<const std::uint8_t> bytes, Address address)
      : bytes_(bytes), address_(address) {}
  // Entries in memory that `read` reads, `window_bytes` at a time.
  EhFrameReader(const AnyMemoryReader& read, std::size_t window_bytes)
      : read_(&read), window_bytes_(window_bytes) {}

  // The entry at `address`; nothing if it cannot be read.
  std::optional<EhFrameEntry> At(Address address);

  // True if some bytes could not be read.
  [[nodiscard]] bool has_failed() const { return has_failed_; }

 private:
  // `count` bytes from `address` on; empty if there are fewer.
  std::span<const std::uint8_t> Bytes(Address address, std::size_t count);

  std::span<const std::uint8_t> bytes_;
  Address address_ = 0;
  const AnyMemoryReader* read_ = nullptr;
  std::size_t window_bytes_ = 0;
  std::vector<std::uint8_t> window_;
  bool has_failed_ = false;
};

// CIEs by address, each read once.
class CieCache {
 public:
  explicit CieCache(Architecture architecture) : registers_(DwarfRegistersOf(architecture)) {}

  // The CIE at `address`, or nullptr if it cannot be understood. `reader` is not the one that an
  // FDE in use came from.
  const CfiEntry* At(EhFrameReader& reader, Address address);

  [[nodiscard]] std::size_t broken() const { return broken_; }

 private:
  struct Cie {
    std::vector<std::uint8_t> bytes;  // that the entry's expressions lie in
    std::optional<CfiEntry> entry;
  };
  std::optional<CfiEntry> Parse(DwarfReader body) const;

  DwarfRegisters registers_;
  std::map<Address, Cie> cies_;
  std::size_t broken_ = 0;
};

}  // namespace strobe::internal
