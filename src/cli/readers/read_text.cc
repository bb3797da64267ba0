#include "read_text.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "profile/profile_builder.h"
#include "text_frames.h"

namespace strobe::internal {
namespace {

// The frames of a line, from the leaf to the root.
bool SplitStack(std::string_view stack, TextFrames& all, std::vector<std::uint32_t>& frames) {
  frames.clear();
  while (!stack.empty()) {
    const std::size_t end = std::min(stack.find(';'), stack.size());
    if (end > 0) frames.push_back(all.Named(stack.substr(0, end)));
    stack.remove_prefix(std::min(end + 1, stack.size()));
  }
  std::ranges::reverse(frames);
  return frames.size() <= kMaxTextFrames;
}

// Takes the count at the end of `line` off it. False if there is none, or no stack before it.
bool TakeCount(std::string_view& line, std::int64_t& count) {
  const std::size_t space = line.rfind(' ');
  if (space == std::string_view::npos || !TakeNumber(line.substr(space + 1), count)) return false;
  line = WithoutSpaces(line.substr(0, space));
  return true;
}

// count * factor, and the largest number where that overflows.
std::int64_t InUnit(std::int64_t count, std::int64_t factor) {
  constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
  return count > kMost / factor ? kMost : count * factor;
}

absl::Status NoStack(std::uint64_t number, std::string_view line) {
  constexpr std::size_t kLeastAddressDigits = 4;
  std::uint64_t address = 0;
  const std::string_view word = FirstWord(line);
  if (word.size() >= kLeastAddressDigits && absl::SimpleHexAtoi(Absl(word), &address)) {
    return absl::InvalidArgumentError(
        absl::StrCat("line ", number,
                     " is a frame without a sample: perf script has to print the thread and the "
                     "event, too, as by -F comm,tid,time,event,period,ip,sym,dso"));
  }
  return absl::InvalidArgumentError(absl::StrCat("not a profile: line ", number,
                                                 " is neither pprof nor \"root;...;leaf COUNT\""));
}

constexpr std::array<std::pair<std::string_view, FoldedUnit>, 6> kUnits{{
    {"samples", {}},
    {"ns", {{"time", "nanoseconds"}, 1}},
    {"us", {{"time", "nanoseconds"}, 1'000}},
    {"ms", {{"time", "nanoseconds"}, 1'000'000}},
    {"s", {{"time", "nanoseconds"}, 1'000'000'000}},
    {"bytes", {{"space", "bytes"}, 1}},
}};

}  // namespace

std::optional<FoldedUnit> FindFoldedUnit(std::string_view name) {
  for (const auto& [known, unit] : kUnits) {
    if (name == known) return unit;
  }
  return std::nullopt;
}

std::string FoldedUnitNames() {
  return absl::StrJoin(kUnits, ", ",
                       [](std::string* text, const auto& unit) { text->append(unit.first); });
}

bool IsFoldedStack(std::string_view line) {
  line = WithoutSpaces(line);
  std::int64_t count = 0;
  return TakeCount(line, count);
}

absl::StatusOr<LoadedProfile> ReadFolded(Input& input, const FoldedUnit& unit) {
  ProfileBuilder builder;
  TextFrames all(builder);
  builder.profile().value_types = {unit.type};
  const std::uint32_t no_labels = builder.Labels({});
  std::vector<std::uint32_t> frames;
  std::string_view line;
  for (std::uint64_t number = 1;; ++number) {
    const absl::StatusOr<bool> has_line = input.Line(line, kMaxLineBytes);
    if (!has_line.ok()) return has_line.status();
    if (!*has_line) break;
    line = WithoutSpaces(line);
    if (line.empty() || line[0] == '#') continue;
    std::int64_t value = 0;
    std::string_view stack = line;
    if (!TakeCount(stack, value)) return NoStack(number, line);
    value = InUnit(value, unit.factor);
    if (!SplitStack(stack, all, frames))
      return absl::InvalidArgumentError(absl::StrCat("line ", number, " has too many frames"));
    if (value != 0) builder.AddRow(builder.Stack(frames), no_labels, std::span(&value, 1));
    if (absl::Status status = builder.status(); !status.ok()) return status;
  }
  builder.loaded().format = "folded stacks";
  return builder.Finish();
}

}  // namespace strobe::internal
