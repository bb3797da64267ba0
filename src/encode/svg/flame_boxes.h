// FlameBoxes: the boxes of a profile's flame graph, in units of a value type.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
#include <vector>

#include "../html/html_tree.h"
#include "absl/status/statusor.h"
#include "strobe/encode/profile_view.h"

namespace strobe::internal {

// A function in its caller, or functions that are too narrow to be drawn.
struct FlameBox {
  static constexpr std::uint32_t kNoFunction = 0xFFFFFFFF;

  std::uint32_t function = kNoFunction;  // index into FlameBoxes::functions
  bool is_inlined = false;
  std::uint32_t level = 0;       // 0 for a function without a caller
  double begin = 0, amount = 0;  // of the total
  double self = 0;               // of the amount: in no callee
  std::size_t functions = 1;     // in the caller and below; more than 1 without a function
};

class FlameBoxes {
 public:
  // What is drawn: functions with at least `least_share` of the total, at most `max_boxes` of them,
  // and at most `max_levels` below each other.
  struct Limits {
    double least_share;
    std::size_t max_boxes, max_levels;
  };

  // Of the value type `column`; amounts less than 0 count as 0. ResourceExhausted if there are too
  // many stacks.
  static absl::StatusOr<FlameBoxes> Make(const ProfileView& view, std::size_t column,
                                         const Limits& limits);

  // A caller comes before its callees, a wider callee before the others, what is not drawn last.
  [[nodiscard]] const std::vector<FlameBox>& boxes() const { return boxes_; }
  [[nodiscard]] double total() const { return total_; }
  [[nodiscard]] std::size_t levels() const { return levels_; }
  [[nodiscard]] const PageFunction& function(const FlameBox& box) const {
    return code_.functions()[box.function];
  }
  // The path of a function's module; empty if it has none.
  [[nodiscard]] std::string_view ModulePath(const PageFunction& function) const {
    return Text(code_.modules()[function.module].path);
  }
  [[nodiscard]] std::string_view Text(std::uint32_t text) const { return texts_->texts()[text]; }
  // What stacks end in that is not code, "[lost]", with its amount, the largest first.
  [[nodiscard]] const std::vector<std::pair<std::string_view, double>>& marks() const {
    return marks_;
  }

 private:
  struct Callees {
    std::vector<std::uint32_t> nodes;  // of all callers, by caller, the widest first
    std::vector<std::uint32_t> begins;
  };

  FlameBoxes() : texts_(std::make_unique<PageTexts>()), code_(*texts_) {}

  absl::Status AddStacks(const ProfileView& view, std::size_t column);
  void AddMarks();
  [[nodiscard]] double LeastAmount(const Limits& limits) const;
  [[nodiscard]] Callees SortedCallees() const;
  void Place(double least_amount, std::size_t max_levels);

  std::unique_ptr<PageTexts> texts_;
  PageCode code_;
  PageTree tree_;                    // its sites are 2 * function, + 1 if it is inlined
  std::vector<double> self_, sums_;  // of each node; a sum is with that of callees
  double total_ = 0;
  std::size_t levels_ = 0;
  std::vector<FlameBox> boxes_;
  std::vector<std::pair<std::string_view, double>> marks_;
};

}  // namespace strobe::internal
