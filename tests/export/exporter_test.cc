#include "strobe/export/exporter.h"

#include <string>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"

namespace strobe {
namespace {

struct SmallestExporter {
  absl::StatusOr<std::string> Export(const ExportRequest&) { return std::string("nowhere"); }
};
struct WithoutPlace {
  absl::Status Export(const ExportRequest&) { return absl::OkStatus(); }
};

TEST(ExporterTest, ConceptTakesWhatKeepsTheContractAndRefusesTheRest) {
  EXPECT_TRUE(Exporter<SmallestExporter>);
  EXPECT_FALSE(Exporter<WithoutPlace>);
  EXPECT_FALSE(Exporter<int>);
}

TEST(ExporterTest, OnlyAnErrorOfTheProfileItselfRefusesIt) {
  EXPECT_TRUE(RefusesProfile(absl::InvalidArgumentError("400")));
  EXPECT_TRUE(RefusesProfile(absl::OutOfRangeError("413")));
  EXPECT_FALSE(RefusesProfile(absl::OkStatus()));
  for (const auto code : {absl::StatusCode::kUnavailable, absl::StatusCode::kPermissionDenied,
                          absl::StatusCode::kUnauthenticated, absl::StatusCode::kResourceExhausted,
                          absl::StatusCode::kNotFound, absl::StatusCode::kUnknown}) {
    EXPECT_FALSE(RefusesProfile(absl::Status(code, "the way to it may be mended")));
  }
}

}  // namespace
}  // namespace strobe
