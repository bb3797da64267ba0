// FunctionSums: what functions cost, of one profile after another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "commands/command.h"
#include "profile/costs.h"
#include "ui/pattern.h"

namespace strobe::internal {

class FunctionSums {
 public:
  // Memory of all rows, as this estimates it.
  static constexpr std::size_t kMaxBytes = std::size_t{64} << 20;
  // The row of functions that come when that is used up.
  static constexpr std::string_view kOthers = "[other functions]";

  // With `by_process`, a function of several processes has a row for each name of theirs.
  explicit FunctionSums(bool by_process, std::size_t max_bytes = kMaxBytes)
      : by_process_(by_process), max_bytes_(max_bytes) {}

  struct Row {
    std::string function;
    std::string process;  // its name; empty unless rows are by process
    FunctionCost cost;
  };

  void Add(const FilteredProfile& subject);

  // The numbers of rows with a cost whose functions match, largest first.
  [[nodiscard]] std::vector<std::uint32_t> Largest(bool by_total, const Pattern& pattern) const;
  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  // What shares are of.
  [[nodiscard]] std::int64_t whole() const { return whole_; }
  // Of what was added.
  [[nodiscard]] std::uint64_t samples() const { return samples_; }
  [[nodiscard]] std::uint64_t lost() const { return lost_; }  // samples

 private:
  std::uint32_t Number(const std::string& function, const std::string& process);

  bool by_process_;
  std::size_t max_bytes_;
  std::vector<Row> rows_;
  absl::flat_hash_map<std::pair<std::string, std::string>, std::uint32_t> numbers_;
  std::size_t bytes_ = 0;
  std::int64_t whole_ = 0;
  std::uint64_t samples_ = 0;
  std::uint64_t lost_ = 0;
};

}  // namespace strobe::internal
