#include "../../../src/cli/record/backends.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include "absl/strings/str_split.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

struct UseOfBackend {
  template <class Encoder>
  std::string operator()(const HttpExporter& /*exporter*/, const Encoder& /*encoder*/) const {
    return std::string(Encoder::kFileSuffix);
  }
};

TEST(BackendsTest, EachOneThatIsListedIsThere) {
  const std::vector<std::string> names = absl::StrSplit(std::string(kBackends), ", ");
  EXPECT_EQ(names.size(), 5u);
  for (const std::string& name : names) {
    const std::string suffix =
        WithBackend(name, "http://localhost:1", std::string("none"), UseOfBackend());
    EXPECT_NE(suffix, "none") << name;
    EXPECT_EQ(suffix == PprofEncoder::kFileSuffix, name != "otlp") << name;
  }
}

TEST(BackendsTest, OthersAreNone) {
  for (const char* const name : {"", "Datadog", "datadog ", "files"})
    EXPECT_EQ(WithBackend(name, "", std::string("none"), UseOfBackend()), "none") << name;
}

}  // namespace
}  // namespace strobe::internal
