// ProfileBuilder: makes a LoadedProfile of stacks and rows, within a limit of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "loaded_profile.h"
#include "strobe/aggregate/profile_tables.h"
#include "strobe/core/label_set.h"

namespace strobe::internal {

// Memory of one profile, as ProfileBuilder estimates it.
inline constexpr std::size_t kMaxProfileBytes = std::size_t{4} << 30;

class ProfileBuilder {
 public:
  explicit ProfileBuilder(std::size_t max_bytes = kMaxProfileBytes);

  [[nodiscard]] LoadedProfile& loaded() { return loaded_; }
  [[nodiscard]] Profile& profile() { return loaded_.profile; }
  [[nodiscard]] Symbols& symbols() { return loaded_.symbols; }

  // The node of the stack of `frames`, which go from the leaf to the root, as indices.
  std::uint32_t Stack(std::span<const std::uint32_t> frames);
  // The number of an equal set of labels.
  std::uint32_t Labels(LabelSet set) { return tables_.Labels(profile(), std::move(set)); }
  // The number of the row of `stack` and `labels`, to which `values` are added. The first row
  // decides the number of columns; all others must have as many.
  std::uint32_t AddRow(std::uint32_t stack, std::uint32_t labels,
                       std::span<const std::int64_t> values) {
    return tables_.AddRow(profile(), stack, labels, values);
  }
  // Adds a moment of a row, whose values are a part of the row's.
  void AddMoment(std::uint32_t row, std::int64_t time_ns, std::span<const std::int64_t> values);
  // Forgets which rows there are; for a caller that takes them away to add them anew.
  void ForgetRows() { tables_.ForgetRows(); }
  // Adds to the account of memory. To be called for what is added to profile() and symbols().
  void Take(std::size_t bytes) { tables_.budget().Take(bytes); }
  // ResourceExhausted once the profile has become larger than the limit.
  [[nodiscard]] absl::Status status() const;

  // Adds the threads that labels name, and sorts the moments.
  LoadedProfile Finish();

 private:
  void AddThreads();
  void SortMoments();

  LoadedProfile loaded_;
  ProfileTables tables_;
  // The last stack, from the root to the leaf: most stacks share frames with the one before.
  std::vector<std::uint32_t> last_frames_;
  std::vector<std::uint32_t> last_nodes_;
};

}  // namespace strobe::internal
