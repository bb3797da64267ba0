// SharedContexts: what the numbers in the contexts of a program's samples mean, in memory that its
// worker reads also after the program's end.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "strobe/aggregate/label_table.h"
#include "strobe/aggregate/slow_spans.h"
#include "strobe/base/visibility.h"
#include "strobe/core/label_set.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// The sets of a LabelTable by their numbers. It begins as zeroed memory, and only grows: a set that
// is there never changes. Any thread, without a lock.
class SharedLabels {
 public:
  // A set takes fewer bytes here than in its table.
  static constexpr std::size_t kBytes = LabelTable::kDefaultLimitBytes;
  // Numbers below that; kNoContext and kOverflowContext are no sets of the table.
  static constexpr std::size_t kNumbers = LabelTable::kMaxSets + kOverflowContext + 1;

  // In the program. Leaves out a set whose number has one, or that finds no room.
  void Add(std::uint64_t number, const LabelSet& set) noexcept;
  // In the worker, of any bytes: nothing unless a whole set is there.
  [[nodiscard]] std::optional<LabelSet> Find(std::uint64_t number) const;

 private:
  // A label is this, its key, and its text or the 8 bytes of its number.
  struct LabelHead {
    static constexpr std::uint16_t kIsNumber = 0xFFFF;  // no text has this length

    std::uint16_t key_bytes = 0;
    std::uint16_t text_bytes = 0;
  };
  static constexpr std::size_t kMaxSetBytes =
      LabelSet::kMaxLabels * (sizeof(LabelHead) + LabelSet::kMaxKeyBytes + LabelSet::kMaxTextBytes);

  static std::size_t BytesOf(const LabelSet& set);
  static void Write(const LabelSet& set, char* to);

  std::atomic<std::uint64_t> used_bytes_{0};
  // Where the set begins in `bytes_`, shifted by 32, and its bytes; 0 for none.
  std::array<std::atomic<std::uint64_t>, kNumbers> places_{};
  std::array<char, kBytes> bytes_{};
};

struct SharedContexts {
  SharedLabels labels;
  std::atomic<std::uint64_t> process_labels{kNoContext};  // see ProcessContext
  SlowSpans slow_spans;
};

}  // namespace internal
}  // namespace strobe
