// ProfileSum: the sum of a session's periods, for an exporter whose one file has the whole session.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "strobe/aggregate/profile_tables.h"
#include "strobe/core/profile.h"
#include "strobe/core/symbols.h"

namespace strobe {

// Add takes periods in their order; each has the same value types. The result begins with the first
// period and lasts as long as all of them. Not thread-safe.
// * A column that is a level (inuse_space) has the last period's values. All others are added up.
// * The statistics are the last period's. Moments are left out.
// * Rows beyond the limits are in [overflow].
class ProfileSum {
 public:
  static constexpr std::size_t kMaxStackNodes = std::size_t{1} << 20;
  static constexpr std::size_t kMaxRows = std::size_t{1} << 19;
  static constexpr std::size_t kMaxThreads = std::size_t{1} << 18;  // further ones are left out

  // `levels` names the value types that are levels. A viewer shows the last of them first.
  explicit ProfileSum(std::vector<std::string> levels = {}) : levels_(std::move(levels)) {}

  void Add(const Profile& period, const Symbols& symbols);

  [[nodiscard]] const Profile& profile() const { return profile_; }
  [[nodiscard]] const Symbols& symbols() const { return symbols_; }

 private:
  void AddHead(const Profile& period);
  void ForgetLevels();
  void AddModules(const Profile& period, const Symbols& symbols);
  void AddFunctions(const Symbols& symbols);
  void AddFrames(const Profile& period, const Symbols& symbols);
  void AddStacks(const Profile& period);
  void AddLabelSets(const Profile& period);
  void AddThreads(const Profile& period);
  void AddRows(const Profile& period);
  [[nodiscard]] FrameSymbols Renumbered(const FrameSymbols& frame, const Symbols& symbols);
  [[nodiscard]] std::uint32_t OverflowStack();
  [[nodiscard]] std::uint32_t NumberOfZone(const std::string& name);

  const std::vector<std::string> levels_;
  Profile profile_;
  Symbols symbols_;

  // The numbers of what the sum has.
  absl::flat_hash_map<std::pair<Address, std::uint32_t>, std::uint32_t> frame_numbers_;
  absl::flat_hash_map<std::pair<std::string, std::string>, std::uint32_t> function_numbers_;
  ProfileTables tables_{std::numeric_limits<std::size_t>::max()};  // counts limit it
  absl::flat_hash_map<std::pair<std::uint64_t, std::int64_t>, std::size_t> thread_numbers_;
  // Of the period that is being added: its numbers in the sum.
  std::vector<std::uint32_t> modules_, functions_, frames_, stacks_, label_sets_;
};

}  // namespace strobe
