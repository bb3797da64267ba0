// LevelRows: the levels of providers, as rows of one period. See LevelProvider.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

#include "strobe/aggregate/aggregator.h"
#include "strobe/aggregate/recording.h"
#include "strobe/base/address.h"
#include "strobe/base/visibility.h"
#include "strobe/core/label_set.h"
#include "strobe/core/sample_context.h"
#include "strobe/core/stack.h"
#include "strobe/core/stack_table.h"
#include "strobe/provider/sample_provider.h"
#include "strobe/runtime/drain/kept_stacks.h"

namespace strobe {
namespace STROBE_HIDDEN internal {

// Collector thread only. Rows that are added are part of the period only if the period is then
// taken. If memory runs out before, the next Add takes them back first, and adds the level at its
// own time.
template <class Providers>
class LevelRows {
 public:
  static constexpr bool kHasLevels = Providers::kHasLevels;

  // Adds the present levels to the rows of the recording's thread `key`. Stacks that a StackTable
  // has only the numbers of are in `kept`. If that throws
  // std::bad_alloc, it can be repeated.
  void Add(Providers& providers, KeptStacks& kept, Recording& recording, std::uint32_t key,
           std::uint32_t generation) {
    TakeBack(recording, key, generation);
    rows_.clear();
    frames_.clear();
    providers.ForEachEnabled([&](auto& provider, auto index) {
      if constexpr (LevelProvider<std::remove_cvref_t<decltype(provider)>>) {
        constexpr std::size_t kFirst = Providers::FirstColumn(index);
        provider.VisitLevels([&](std::span<const Address> leaf_first, StackEnd end,
                                 const auto& amounts, std::uint64_t labels = kNoContext) {
          FindPending(kept, leaf_first, end);
          Row row{.first_frame = frames_.size(),
                  .frame_count = leaf_first.size(),
                  .end = end,
                  .context = SampleContext(labels & (SampleContext::kLabelNumbers - 1))};
          for (std::size_t i = 0; i < amounts.size(); ++i) row.values[kFirst + i] = amounts[i];
          frames_.insert(frames_.end(), leaf_first.begin(), leaf_first.end());
          rows_.push_back(row);
        });
      }
    });
    for (const Row& row : rows_) {
      AddRow(recording, key, generation, row, row.values);
      ++added_;
    }
  }

  // Call this when the period has been taken.
  void Forget() { added_ = 0; }

 private:
  using Values = std::array<std::int64_t, Providers::kValueCount>;
  struct Row {
    std::size_t first_frame = 0;  // in frames_
    std::size_t frame_count = 0;  // 0 if the stack is not known
    StackEnd end{};
    SampleContext context;
    Values values{};
  };

  // Replaces a PendingFrame by the stack that it stands for, or by no frames.
  static void FindPending(KeptStacks& kept, std::span<const Address>& leaf_first, StackEnd& end) {
    const std::uint64_t number = leaf_first.size() == 1 ? PendingNumber(leaf_first[0]) : 0;
    if (number == 0) return;
    leaf_first = {};
    const KeptStacks::Stack* const stack = kept.Find(number);
    if (stack == nullptr) return;
    leaf_first = stack->leaf_first;
    end = stack->end;
  }

  void TakeBack(Recording& recording, std::uint32_t key, std::uint32_t generation) {
    for (; added_ > 0; --added_) {
      Values values = rows_[added_ - 1].values;
      for (std::int64_t& value : values) value = -value;
      AddRow(recording, key, generation, rows_[added_ - 1], values);
    }
  }

  void AddRow(Recording& recording, std::uint32_t key, std::uint32_t generation, const Row& row,
              const Values& values) {
    if (row.frame_count == 0) {
      recording.AddPseudo(key, PseudoFrame::kLost, values);
      return;
    }
    const StackDelta stack{
        .generation = generation,
        .end = row.end,
        .shared = 0,
        .leaf_first = std::span(frames_).subspan(row.first_frame, row.frame_count)};
    static_cast<void>(recording.Add(key, stack, values, row.context));
  }

  std::vector<Row> rows_;
  std::vector<Address> frames_;
  std::size_t added_ = 0;  // of rows_, to the period that has not been taken yet
};

}  // namespace internal
}  // namespace strobe
