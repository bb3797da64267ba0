// UnwindTable: the rules of one module's code, by address. UnwindModules: the tables of all modules, as the handler sees them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "strobe/base/address.h"
#include "strobe/base/cache_line.h"
#include "strobe/base/signal_safe.h"
#include "strobe/unwind/unwind_rule.h"

namespace strobe {

// From here on, until the next row, this rule holds.
struct UnwindRow {
  std::uint32_t offset = 0;  // from the start of the module's text
  UnwindRule rule;
  friend bool operator==(const UnwindRow&, const UnwindRow&) = default;
};

// From here on, until the next row, the caller's rbx is found so. Few rules need it, so the walk finds it only when one does: lazy
// binding's trampolines realign the stack and count their CFA from rbx, which is then saved anywhere among the frames below them.
struct SavedRow {
  enum Where : std::uint32_t { kUnchanged, kFromCfa, kFromSp, kUnknown };  // not touched; [CFA + distance]; [sp + distance]

  std::uint32_t offset = 0;  // from the start of the module's text
  std::uint32_t where : 2 = kUnknown;
  std::int32_t distance : 30 = 0;
  friend bool operator==(const SavedRow&, const SavedRow&) = default;
};
static_assert(sizeof(SavedRow) == 8);

// Immutable and self-contained: nothing in it points into the module, so that a dlclose cannot fault a reader. The text is divided into
// pieces of 2^k bytes, each with one cache line: up to 16 offsets within the piece, and the number of the rule that begins at each. A piece
// with more rows has its line say so and keeps them aside.
class UnwindTable {
 public:
  UnwindTable() = default;
  // `rows` are sorted by offset; what lies before the first is unknown. `text_bytes` is the length of the text.
  UnwindTable(std::uint32_t text_bytes, const std::vector<UnwindRow>& rows, std::vector<SpecialRule> specials,
              std::vector<SavedRow> saved_rows = {});

  // The rule in force at `offset`. Signal-safe.
  STROBE_SIGNAL_SAFE UnwindRule Find(std::uint32_t offset) const noexcept {
    const std::size_t piece = offset >> shift_;
    if (piece >= lines_.size()) return UnwindRule::Unknown();
    const Line& line = lines_[piece];
    const auto within = static_cast<std::uint16_t>(offset & ((1u << shift_) - 1));
    if (line.offsets[0] != 0) return FindAside(line, within);
    std::uint32_t rows = 0;
    for (const std::uint16_t begin : line.offsets) rows += begin <= within ? 1 : 0;
    return dictionary_[line.rules[rows - 1]];
  }

  // The rule that UnwindRule::special_number names.
  [[nodiscard]] const SpecialRule& Special(UnwindRule rule) const noexcept { return specials_[rule.special_number()]; }

  // Where the code at `offset` keeps its caller's rbx; by binary search. Signal-safe.
  STROBE_SIGNAL_SAFE SavedRow FindSaved(std::uint32_t offset) const noexcept {
    std::size_t low = 0;
    std::size_t high = saved_rows_.size();
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (saved_rows_[middle].offset <= offset) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low == 0 ? SavedRow() : saved_rows_[low - 1];
  }

  // The cache line that Find(offset) will read, for prefetching; nullptr where there is none.
  [[nodiscard]] const void* LineOf(std::uint32_t offset) const noexcept {
    const std::size_t piece = offset >> shift_;
    return piece < lines_.size() ? &lines_[piece] : nullptr;
  }

  [[nodiscard]] std::size_t memory_bytes() const {
    return lines_.size() * sizeof(Line) + aside_.size() * sizeof(Aside) + dictionary_.size() * sizeof(UnwindRule) +
           specials_.size() * sizeof(SpecialRule) + saved_rows_.size() * sizeof(SavedRow);
  }
  [[nodiscard]] std::size_t rule_count() const { return dictionary_.size(); }

 private:
  static constexpr std::size_t kRowsPerLine = 16;
  static constexpr std::uint16_t kNoRow = 0xFFFF;
  struct alignas(kCacheLineBytes) Line {
    std::array<std::uint16_t, kRowsPerLine>
        offsets;  // the first is 0; kNoRow past the last. Not 0: (1, count, low, high of the index aside)
    std::array<std::uint16_t, kRowsPerLine> rules;
  };
  struct Aside {
    std::uint16_t offset;
    std::uint16_t rule;
  };

  STROBE_SIGNAL_SAFE UnwindRule FindAside(const Line& line, std::uint16_t within) const noexcept {
    const Aside* row = aside_.data() + (std::uint32_t{line.offsets[2]} | std::uint32_t{line.offsets[3]} << 16);
    std::size_t low = 0;
    std::size_t high = line.offsets[1];
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      (row[middle].offset <= within ? low : high) = middle;
    }
    return dictionary_[row[low].rule];
  }

  unsigned shift_ = 12;
  std::vector<Line> lines_;
  std::vector<Aside> aside_;
  std::vector<UnwindRule> dictionary_;
  std::vector<SpecialRule> specials_{SpecialRule()};
  std::vector<SavedRow> saved_rows_;
};

// An immutable snapshot: which table serves which addresses. Published to handlers by a pointer; freed when none can still see it.
class UnwindModules {
 public:
  // Text is compiled in pieces of this size, each when it is first needed.
  static constexpr std::size_t kPieceBytes = std::size_t{1} << 18;

  struct Entry {
    Address start = 0;
    Address limit = 0;
    std::shared_ptr<const UnwindTable> table;
  };

  UnwindModules() = default;
  // Overlapping entries are the caller's mistake; the later one wins.
  explicit UnwindModules(std::vector<Entry> entries) : entries_(std::move(entries)) {
    std::sort(entries_.begin(), entries_.end(), [](const Entry& a, const Entry& b) { return a.start < b.start; });
  }

  // The entry that holds `pc`, or nullptr. Signal-safe.
  STROBE_SIGNAL_SAFE const Entry* Find(Address pc) const noexcept {
    std::size_t low = 0;
    std::size_t high = entries_.size();
    while (low < high) {
      const std::size_t middle = (low + high) / 2;
      if (entries_[middle].start <= pc) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    if (low == 0 || pc >= entries_[low - 1].limit) return nullptr;
    return &entries_[low - 1];
  }

  // A number that no other snapshot of this process has, and none has 0. Signal-safe.
  [[nodiscard]] std::uint64_t serial() const noexcept { return serial_; }
  [[nodiscard]] const std::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] std::size_t memory_bytes() const {
    std::size_t bytes = entries_.size() * sizeof(Entry);
    for (const Entry& entry : entries_) bytes += entry.table->memory_bytes();
    return bytes;
  }

 private:
  static std::uint64_t NextSerial() noexcept {
    static constinit std::atomic<std::uint64_t> last{0};
    return last.fetch_add(1, std::memory_order_relaxed) + 1;
  }

  std::vector<Entry> entries_;
  std::uint64_t serial_ = NextSerial();
};

}  // namespace strobe
