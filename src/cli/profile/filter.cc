#include "filter.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "../../encode/row_texts.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "strobe/base/amounts.h"
#include "ui/pattern.h"

namespace strobe::internal {
namespace {

constexpr double kMaxSeconds = 9e9;

// Of each node: whether a function of its stack matches. Parents stand before their children.
std::vector<bool> MatchingStacks(const Profile& profile, const FunctionLines& lines,
                                 const Pattern& pattern) {
  std::vector<bool> functions;
  for (const NamedFunction& function : lines.functions())
    functions.push_back(pattern.Matches(function.name));
  std::vector<bool> stacks(profile.stacks.size());
  for (std::size_t i = 1; i < stacks.size(); ++i) {
    const auto frame = lines.Of(profile.stacks[i].frame);
    stacks[i] =
        stacks[profile.stacks[i].parent] ||
        std::ranges::any_of(frame, [&](const auto& line) { return functions[line.function]; });
  }
  return stacks;
}

// "600..", "..9" and "60..600": the numbers from and to, both included. Nothing for other texts.
struct NumberRange {
  std::int64_t from = INT64_MIN;
  std::int64_t to = INT64_MAX;

  static std::optional<NumberRange> Parse(absl::string_view text) {
    const std::size_t dots = text.find("..");
    if (dots == text.npos) return std::nullopt;
    const absl::string_view from = text.substr(0, dots);
    const absl::string_view to = text.substr(dots + 2);
    NumberRange range;
    if (!from.empty() && !absl::SimpleAtoi(from, &range.from)) return std::nullopt;
    if (!to.empty() && !absl::SimpleAtoi(to, &range.to)) return std::nullopt;
    return range;
  }
};

// Ids of threads are texts in some formats.
bool HasValue(const Label& label, const std::string& wanted) {
  const std::string text = ValueText(label);
  if (text == wanted) return true;
  std::int64_t number = 0;
  const std::optional<NumberRange> range = NumberRange::Parse(wanted);
  return range && absl::SimpleAtoi(text, &number) && range->from <= number && number <= range->to;
}

bool HasLabel(const LabelSet& set, const std::pair<std::string, std::string>& wanted) {
  return std::ranges::any_of(set.labels(), [&](const Label& label) {
    // pprof files have '_' where a key had a space.
    std::string key = label.key;
    std::ranges::replace(key, ' ', '_');
    return (label.key == wanted.first || key == wanted.first) && HasValue(label, wanted.second);
  });
}

// Of each set of labels: whether it is wanted.
absl::StatusOr<std::vector<bool>> MatchingLabels(const Profile& profile, const Filter& filter) {
  const absl::StatusOr<Pattern> thread = Pattern::Parse(filter.thread);
  if (!thread.ok()) return thread.status();
  std::vector<bool> result;
  for (const LabelSet& set : profile.label_sets) {
    const bool is_thread = filter.thread.empty() || thread->Matches(set.Text(kThreadNameLabel)) ||
                           absl::StrCat(set.Number(kThreadIdLabel)) == filter.thread;
    result.push_back(is_thread && std::ranges::all_of(filter.labels, [&](const auto& wanted) {
                       return HasLabel(set, wanted);
                     }));
  }
  return result;
}

// Makes the moments from `from_ns` to `to_ns` the whole profile.
void KeepTimes(Profile& profile, std::int64_t from_ns, std::int64_t to_ns) {
  const std::size_t columns = profile.value_types.size();
  std::ranges::fill(profile.values, 0);
  Profile kept;
  for (std::size_t i = 0; i < profile.moments.size(); ++i) {
    const ProfileMoment& moment = profile.moments[i];
    if (moment.time_ns < from_ns || moment.time_ns >= to_ns) continue;
    const auto values = profile.MomentValues(i);
    kept.moments.push_back(moment);
    kept.moment_values.insert(kept.moment_values.end(), values.begin(), values.end());
    for (std::size_t column = 0; column < columns; ++column) {
      std::int64_t& sum = profile.values[moment.sample * columns + column];
      sum = SaturatedSum(sum, values[column]);
    }
  }
  profile.moments = std::move(kept.moments);
  profile.moment_values = std::move(kept.moment_values);
}

// Removes the rows that are not wanted.
void KeepRows(Profile& profile, const std::vector<bool>& is_wanted) {
  constexpr std::uint32_t kGone = 0xFFFFFFFF;
  Profile kept;
  std::vector<std::uint32_t> numbers(is_wanted.size(), kGone);
  for (std::size_t i = 0; i < is_wanted.size(); ++i) {
    if (!is_wanted[i]) continue;
    numbers[i] = static_cast<std::uint32_t>(kept.samples.size());
    kept.samples.push_back(profile.samples[i]);
    const auto values = profile.Values(i);
    kept.values.insert(kept.values.end(), values.begin(), values.end());
  }
  for (std::size_t i = 0; i < profile.moments.size(); ++i) {
    const ProfileMoment& moment = profile.moments[i];
    if (numbers[moment.sample] == kGone) continue;
    kept.moments.push_back({numbers[moment.sample], moment.time_ns});
    const auto values = profile.MomentValues(i);
    kept.moment_values.insert(kept.moment_values.end(), values.begin(), values.end());
  }
  profile.samples = std::move(kept.samples);
  profile.values = std::move(kept.values);
  profile.moments = std::move(kept.moments);
  profile.moment_values = std::move(kept.moment_values);
}

}  // namespace

absl::Status Filter::Apply(LoadedProfile& loaded, const FunctionLines& lines) const {
  Profile& profile = loaded.profile;
  if (from_s.has_value() || to_s.has_value()) {
    if (profile.moments.empty()) {
      return absl::FailedPreconditionError(
          "--from and --to need the times of samples, and this profile has none");
    }
    const std::int64_t first_ns = profile.moments.front().time_ns;
    const auto instant = [first_ns](double seconds) {
      return SaturatedSum(first_ns, static_cast<std::int64_t>(
                                        std::clamp(seconds, -kMaxSeconds, kMaxSeconds) * 1e9));
    };
    KeepTimes(profile, instant(from_s.value_or(0)), instant(to_s.value_or(kMaxSeconds)));
  }
  if (focus.empty() && ignore.empty() && thread.empty() && labels.empty() && !from_s && !to_s)
    return absl::OkStatus();
  const absl::StatusOr<Pattern> wanted = Pattern::Parse(focus);
  if (!wanted.ok()) return wanted.status();
  const absl::StatusOr<Pattern> unwanted = Pattern::Parse(ignore);
  if (!unwanted.ok()) return unwanted.status();
  const absl::StatusOr<std::vector<bool>> sets = MatchingLabels(profile, *this);
  if (!sets.ok()) return sets.status();
  std::vector<bool> keeps(profile.stacks.size(), true);
  if (!focus.empty()) keeps = MatchingStacks(profile, lines, *wanted);
  std::vector<bool> loses(profile.stacks.size());
  if (!ignore.empty()) loses = MatchingStacks(profile, lines, *unwanted);
  std::vector<bool> rows;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const ProfileSample& sample = profile.samples[i];
    const bool has_values =
        std::ranges::any_of(profile.Values(i), [](std::int64_t value) { return value != 0; });
    rows.push_back(has_values && keeps[sample.stack] && !loses[sample.stack] &&
                   (*sets)[sample.labels]);
  }
  KeepRows(profile, rows);
  return absl::OkStatus();
}

}  // namespace strobe::internal
