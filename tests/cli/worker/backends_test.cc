#include "../../../src/cli/worker/backends.h"

#include <string>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(BackendsTest, EachOneThatIsListedIsThere) {
  EXPECT_EQ(BackendNames(), "datadog, pyroscope, parca, otlp, post");
  for (const Backend& backend : kBackends) {
    const auto exporter = BackendExporter(backend.name, "http://localhost:1");
    ASSERT_TRUE(exporter.has_value()) << backend.name;
    EXPECT_TRUE(exporter->status().ok()) << exporter->status();
    EXPECT_EQ(exporter->TakesProfiles(), backend.name != "post") << backend.name;
  }
}

TEST(BackendsTest, OthersAreNone) {
  for (const char* const name : {"", "Datadog", "datadog ", "files"})
    EXPECT_FALSE(BackendExporter(name, "").has_value()) << name;
}

}  // namespace
}  // namespace strobe::internal
