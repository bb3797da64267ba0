// UnwindTable: the rules of one module's code, by address. UnwindModules: the tables of all
// modules, as the handler sees them.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <memory_resource>
#include <span>
#include <vector>

#include "strobe/base/address.h"
#include "strobe/base/cache_line.h"
#include "strobe/base/heap_resource.h"
#include "strobe/base/signal_safe.h"
#include "strobe/unwind/rule_cache.h"
#include "strobe/unwind/unwind_rule.h"

namespace strobe {

// How the caller's special register is found (CpuRegisters::kSpecialRegister). Few rules need it,
// so the walk finds it only when one does: it is then saved anywhere among the frames below.
struct SavedRegister {
  enum Where : std::uint32_t {
    kUnchanged,
    kFromCfa,
    kFromSp,
    kUnknown
  };  // not touched; [CFA + distance]; [sp + distance]

  std::uint32_t where : 2 = kUnknown;
  std::int32_t distance : 30 = 0;
  friend bool operator==(const SavedRegister&, const SavedRegister&) = default;
};
static_assert(sizeof(SavedRegister) == 4);

// Holds from `offset` on until the next row.
struct UnwindRow {
  std::uint32_t offset = 0;  // from the start of the text
  UnwindRule rule;
  SavedRegister special_register{};
  friend bool operator==(const UnwindRow&, const UnwindRow&) = default;
};

// Immutable and self-contained: no pointer leads into the module, so a reader cannot fault after a
// dlclose. Its parts lie in one block without addresses: other processes may map that elsewhere.
// Each KiB of text has one cache line with up to 27 rows of two bytes: where the row begins, and
// the number of its rule. If a KiB has more rows, the line says where they lie aside, which costs a
// look-up a second cache line. A third of the text of libc and of libLLVM needs that. Lines for
// shorter stretches of text would be emptier.
class UnwindTable {
 public:
  UnwindTable() = default;
  // `rows` are sorted by offset. If several have one offset, the last one counts; the text before
  // the first row is unknown. `text_bytes` is the length of the text.
  UnwindTable(std::uint32_t text_bytes, const std::vector<UnwindRow>& rows,
              const std::vector<SpecialRule>& specials);

  // The same table, by a copy of its block, aligned to kCacheLineBytes, which the table keeps. For
  // a process that has the copy elsewhere, `block` is its address there, and owns nothing.
  UnwindTable(const UnwindTable& other, std::shared_ptr<const std::byte> block)
      : layout_(other.layout_), block_(std::move(block)) {}
  [[nodiscard]] std::span<const std::byte> block() const { return {block_.get(), layout_.bytes}; }

  // The rule in force at `offset`. Signal-safe.
  STROBE_SIGNAL_SAFE UnwindRule Find(std::uint32_t offset) const noexcept {
    const std::size_t line = offset / kLineText;
    return line < layout_.lines
               ? At<UnwindRule>(layout_.dictionary)[NumberAt(LineAt(line), offset % kLineText)]
               : UnwindRule::Unknown();
  }

  // The rule that UnwindRule::special_number names. A table without rows has no block.
  [[nodiscard]] const SpecialRule& Special(UnwindRule rule) const noexcept {
    return layout_.lines != 0 ? At<SpecialRule>(layout_.specials)[rule.special_number()]
                              : kUnknownRule;
  }

  // How the code at `offset` keeps its caller's special register. Signal-safe.
  STROBE_SIGNAL_SAFE SavedRegister FindSpecialRegister(std::uint32_t offset) const noexcept {
    const std::size_t line = offset / kLineText;
    return line < layout_.lines
               ? At<SavedRegister>(layout_.saved)[NumberAt(LineAt(line), offset % kLineText)]
               : SavedRegister();
  }

  [[nodiscard]] std::size_t memory_bytes() const { return layout_.bytes; }
  [[nodiscard]] std::size_t rule_count() const { return layout_.rules; }

 private:
  // A line's bytes:
  // * [0]: where its rows are.
  // * [1, 9): for each eighth of its text, how many rows begin up to its end. That of the last is
  //   the number of rows.
  // * kInLine: from kOffsets on where each row begins, counted from its eighth's start and so below
  //   128; from kRules on the number of the rule in force at the beginning, then that of each row.
  // * kAside: at kIndex where the same two lists begin in aside_.
  // * kWide: at kIndex where the rows begin in wide_, and at kWideCount their number. For rows and
  //   rules that a byte cannot count, which is rare.
  enum Form : std::uint8_t { kInLine = 0, kAside = 1, kWide = 2 };
  static constexpr std::uint32_t kLineText = 1024;
  static constexpr std::uint32_t kEighth = kLineText / 8;
  static constexpr std::size_t kRowsPerLine = 27;
  static constexpr std::size_t kOffsets = 9;
  static constexpr std::size_t kRules = kOffsets + kRowsPerLine;
  static constexpr std::size_t kIndex = 12;
  static constexpr std::size_t kWideCount = 16;
  struct alignas(kCacheLineBytes) Line {
    std::array<std::uint8_t, kCacheLineBytes> bytes{};
  };
  static_assert(kRules + kRowsPerLine + 1 <= kCacheLineBytes && kEighth <= 128);
  struct WideRow {
    std::uint16_t offset;  // in the line's text
    std::uint16_t number;
  };
  struct NumberedRow {
    std::uint32_t offset;
    std::uint16_t number;
  };

  static std::uint32_t Load32(const Line& line, std::size_t at) noexcept {
    std::uint32_t value;
    std::memcpy(&value, line.bytes.data() + at, sizeof(value));
    return value;
  }

  // How many of eight bytes, from the lowest on, are at most `limit`; all that matter are below
  // 128.
  static std::uint32_t CountUpTo(std::uint64_t bytes, std::uint32_t limit) noexcept {
    constexpr std::uint64_t kOnes = 0x0101010101010101;
    constexpr std::uint64_t kHighBits = 0x80 * kOnes;
    const std::uint64_t above = ~((kOnes * limit | kHighBits) - bytes) & kHighBits;
    return static_cast<std::uint32_t>(std::countr_zero(above)) / 8;
  }

  // The number of the rule in force.
  STROBE_SIGNAL_SAFE std::uint32_t NumberAt(const Line& line, std::uint32_t offset) const noexcept {
    const std::uint8_t* const bytes = line.bytes.data();
    const std::uint8_t* offsets = bytes + kOffsets;
    const std::uint8_t* rules = bytes + kRules;
    if (bytes[0] != kInLine) {
      if (bytes[0] == kWide) return FindWide(line, offset);
      offsets = At<std::uint8_t>(layout_.aside) + Load32(line, kIndex);
      rules = offsets + bytes[8];
    }
    const std::uint32_t eighth = offset / kEighth;
    const std::uint32_t end = bytes[eighth + 1];
    std::uint32_t row = eighth == 0 ? 0 : bytes[eighth];
    std::uint32_t count = 0;
    do {
      std::uint64_t next;  // rows behind this eighth do no harm
      std::memcpy(&next, offsets + row, sizeof(next));
      count = CountUpTo(next, offset % kEighth);
      row += count;
    } while (count == 8 && row < end);
    return rules[std::min(row, end)];
  }

  STROBE_SIGNAL_SAFE std::uint32_t FindWide(const Line& line, std::uint32_t offset) const noexcept {
    const WideRow* rows = At<WideRow>(layout_.wide) + Load32(line, kIndex);
    std::size_t low = 0;
    std::size_t high = Load32(line, kWideCount);
    while (high - low > 1) {
      const std::size_t middle = (low + high) / 2;
      (rows[middle].offset <= offset ? low : high) = middle;
    }
    return rows[low].number;
  }

  static constexpr SpecialRule kUnknownRule{};

  // The parts of a table that is being built.
  struct Parts;
  void Join(const Parts& parts, const std::vector<SpecialRule>& specials);

  // The bytes of a block, from its begin to where each part begins. The lines come first.
  struct Layout {
    std::uint32_t lines = 0;       // their number
    std::uint32_t dictionary = 0;  // UnwindRules; [0] is unknown
    std::uint32_t saved = 0;       // SavedRegisters, by the same number
    std::uint32_t specials = 0;
    std::uint32_t wide = 0;
    std::uint32_t aside = 0;  // seven bytes longer than what is in it, for reading eight at a time
    std::uint32_t rules = 0;  // the number of those in the dictionary
    std::uint32_t bytes = 0;
  };

  template <class T>
  [[nodiscard]] const T* At(std::uint32_t part) const noexcept {
    return reinterpret_cast<const T*>(block_.get() + part);
  }
  [[nodiscard]] const Line& LineAt(std::size_t line) const noexcept { return At<Line>(0)[line]; }

  Layout layout_;
  std::shared_ptr<const std::byte> block_;
};

// An immutable snapshot: which table serves which addresses. A pointer publishes it to handlers. It
// is freed when no handler can still see it.
class UnwindModules {
 public:
  // Text is compiled in chunks of this size, each when a walk first needs it.
  static constexpr std::size_t kChunkBytes = std::size_t{1} << 18;

  struct Entry {
    Address start = 0;
    Address limit = 0;
    std::shared_ptr<const UnwindTable> table;  // nullptr while it is not built
  };

  UnwindModules() : UnwindModules(std::vector<Entry>()) {}
  // Overlapping entries are the caller's mistake; the later one wins. Without `is_complete`, there
  // may be frame information for code that no entry covers. `cache` may be another snapshot's, if
  // every rule in it is also a rule of this snapshot.
  explicit UnwindModules(const std::vector<Entry>& entries, bool is_complete = true,
                         std::shared_ptr<RuleCache> cache = std::make_shared<RuleCache>())
      : entries_(entries.begin(), entries.end(), internal::HeapResource::Get()),
        is_complete_(is_complete),
        cache_(std::move(cache)) {
    std::sort(entries_.begin(), entries_.end(),
              [](const Entry& a, const Entry& b) { return a.start < b.start; });
  }

  // For captures of another process, which read the object, its `entries` and their tables where
  // they lie. `entries` are sorted and do not overlap. `serial` is none of that process's own.
  UnwindModules(std::pmr::vector<Entry> entries, bool is_complete, std::shared_ptr<RuleCache> cache,
                std::uint64_t serial)
      : entries_(std::move(entries)),
        is_complete_(is_complete),
        cache_(std::move(cache)),
        serial_(serial) {}

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

  // The rule for `pc`, which it also adds to the cache; a special rule is not added. Unknown if
  // there is no table. Signal-safe.
  [[gnu::noinline]] STROBE_SIGNAL_SAFE UnwindRule FindRule(Address pc) const noexcept {
    const Entry* const entry = Find(pc);
    if (entry == nullptr || entry->table == nullptr) return UnwindRule::Unknown();
    const UnwindRule rule = entry->table->Find(static_cast<std::uint32_t>(pc - entry->start));
    if (rule.kind() != UnwindRule::Kind::kSpecial) cache_->Add(pc, rule);
    return rule;
  }

  // How the code at `pc` keeps its caller's special register. Signal-safe.
  [[gnu::noinline]] STROBE_SIGNAL_SAFE SavedRegister
  FindSpecialRegister(Address pc) const noexcept {
    const Entry* const entry = Find(pc);
    if (entry == nullptr || entry->table == nullptr) return {};
    return entry->table->FindSpecialRegister(static_cast<std::uint32_t>(pc - entry->start));
  }

  // For walks by this snapshot.
  [[nodiscard]] RuleCache& cache() const noexcept { return *cache_; }
  [[nodiscard]] const std::shared_ptr<RuleCache>& shared_cache() const { return cache_; }
  [[nodiscard]] bool is_complete() const noexcept { return is_complete_; }
  // A number that no other snapshot of this process has; never 0. Signal-safe.
  [[nodiscard]] std::uint64_t serial() const noexcept { return serial_; }
  [[nodiscard]] const std::pmr::vector<Entry>& entries() const { return entries_; }
  [[nodiscard]] std::size_t memory_bytes() const {
    std::size_t bytes = sizeof(*cache_) + entries_.size() * sizeof(Entry);
    for (const Entry& entry : entries_)
      bytes += entry.table == nullptr ? 0 : entry.table->memory_bytes();
    return bytes;
  }

 private:
  static std::uint64_t NextSerial() noexcept;

  std::pmr::vector<Entry> entries_;
  bool is_complete_ = true;
  std::shared_ptr<RuleCache> cache_;
  std::uint64_t serial_ = NextSerial();
};

}  // namespace strobe
