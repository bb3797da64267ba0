// bench_scale AXIS SIZE [PATH]: measures one point of an axis and prints its costs as lines of
// JSON. Exit status 1 if the answer is wrong, 3 if the machine cannot have such a point.
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "point.h"

namespace strobe::testing {
namespace {

constexpr int kWrongStatus = 1, kUsageStatus = 2, kImpossibleStatus = 3;

struct Axis {
  std::string_view name;
  Outcome (*measure)(const Point& point);
};
constexpr Axis kAxes[] = {
    {"stacks", &MeasureStacks},   {"limited_stacks", &MeasureLimitedStacks},
    {"labels", &MeasureLabels},   {"profile", &WriteProfile},
    {"threads", &MeasureThreads}, {"leaf_changes", &MeasureLeafChanges},
    {"modules", &MeasureModules}, {"whole_changes", &MeasureWholeChanges},
    {"text", &MeasureText},
};

int RunPoint(std::string_view name, const Point& point) {
  for (const Axis& axis : kAxes) {
    if (axis.name != name) continue;
    switch (axis.measure(point)) {
      case Outcome::kRight: return 0;
      case Outcome::kWrong: return kWrongStatus;
      case Outcome::kImpossible: return kImpossibleStatus;
    }
  }
  return kUsageStatus;
}

}  // namespace
}  // namespace strobe::testing

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: %s AXIS SIZE [PATH]\n", argv[0]);
    return 2;
  }
  return strobe::testing::RunPoint(
      argv[1], {.size = std::strtoull(argv[2], nullptr, 10), .path = argc > 3 ? argv[3] : ""});
}
