#include "strobe/http/open_metrics.h"

#include <algorithm>
#include <set>
#include <sstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe {
namespace {

using ::testing::HasSubstr;

TEST(OpenMetrics, EachFamilyIsDescribedOnceAndItsSamplesFollow) {
  Stats stats;
  stats.samples = 42;
  stats.threads_unlisted = 43;
  stats.handler_time_ns = 1'500'000'000;
  stats.outputs.resize(2);
  stats.outputs[1].name = "output 2 (.pb.gz)";
  stats.outputs[1].drops[static_cast<std::size_t>(ExportDrop::kRefused)] = 3;
  const std::string text = OpenMetricsText(stats);
  EXPECT_THAT(text, HasSubstr("\nstrobe_samples_total 42\n"));
  EXPECT_THAT(text, HasSubstr("\nstrobe_threads_unlisted_total 43\n"));
  EXPECT_THAT(text, HasSubstr("\nstrobe_handler_seconds_total 1.5\n"));
  EXPECT_THAT(text,
              HasSubstr("\nstrobe_profiles_dropped_total{output=\"2\",reason=\"refused\"} 3\n"));
  EXPECT_TRUE(text.ends_with("\n# EOF\n"));
  std::set<std::string> families;
  std::string family, type;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line) && line != "# EOF";) {
    std::istringstream words(line);
    std::string hash, keyword, name;
    if (line.starts_with("# TYPE ")) {
      words >> hash >> keyword >> family >> type;
      EXPECT_TRUE(families.insert(family).second) << family << " twice";
    } else if (!line.starts_with("# HELP ")) {
      EXPECT_TRUE(line.starts_with(family + (type == "counter" ? "_total" : ""))) << line;
      EXPECT_EQ(
          std::count(line.begin(), line.end(), ' '),
          line.find("reason=\"") == std::string::npos
              ? 1
              : 1 + std::count(line.begin() + static_cast<std::ptrdiff_t>(line.find('"')),
                               line.begin() + static_cast<std::ptrdiff_t>(line.rfind('"')), ' '))
          << line;
    }
  }
  EXPECT_GT(families.size(), 20u);
}

}  // namespace
}  // namespace strobe
