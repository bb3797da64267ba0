#include "strobe/core/settings/nearest_name.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <utility>
#include <vector>

namespace strobe::internal {
namespace {

// A name that is longer has no near one.
constexpr std::size_t kMaxComparedBytes = 100;
// An abbreviation leaves letters out: a letter that is wrong says more than some that are missing.
constexpr std::size_t kWrongLetterCost = 8;
constexpr std::size_t kMissingLetterCost = 1;

struct Distance {
  std::size_t cost = 0;
  std::size_t wrong_letters = 0;  // of the name
};

bool IsLess(const Distance& a, const Distance& b) { return a.cost < b.cost; }

// The cheapest way to make `known` of `name`.
Distance DistanceBetween(std::string_view name, std::string_view known) {
  // row[j] is the distance of the name's letters so far to the first j letters of `known`.
  std::vector<Distance> row(known.size() + 1);
  for (std::size_t j = 1; j < row.size(); ++j) row[j].cost = row[j - 1].cost + kMissingLetterCost;
  for (const char letter : name) {
    Distance diagonal = row[0];
    row[0] = {row[0].cost + kWrongLetterCost, row[0].wrong_letters + 1};
    for (std::size_t j = 1; j < row.size(); ++j) {
      const Distance above = row[j];
      const std::size_t wrong = letter == known[j - 1] ? 0 : 1;
      const Distance changed{diagonal.cost + wrong * kWrongLetterCost,
                             diagonal.wrong_letters + wrong};
      const Distance removed{above.cost + kWrongLetterCost, above.wrong_letters + 1};
      const Distance added{row[j - 1].cost + kMissingLetterCost, row[j - 1].wrong_letters};
      row[j] = std::min({changed, removed, added}, &IsLess);
      diagonal = above;
    }
  }
  return row.back();
}

}  // namespace

std::string_view NearestName(std::string_view name, std::span<const std::string_view> names) {
  std::string_view nearest;
  if (name.empty() || name.size() > kMaxComparedBytes) return nearest;
  std::size_t least = std::numeric_limits<std::size_t>::max();
  for (const std::string_view known : names) {
    const Distance distance = DistanceBetween(name, known);
    if (3 * distance.wrong_letters > name.size() || distance.cost >= least) continue;
    nearest = known;
    least = distance.cost;
  }
  return nearest;
}

}  // namespace strobe::internal
