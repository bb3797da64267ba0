#include "strobe/export/exporter.h"

#include <atomic>
#include <chrono>
#include <cstdint>
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

TEST(ExporterTest, ADeadlineMayComeNearer) {
  EXPECT_FALSE(ExportDeadline().HasPassed()) << "never, if there is none";
  std::atomic<std::int64_t> end_ns{INT64_MAX};
  const ExportDeadline deadline(end_ns);
  EXPECT_FALSE(deadline.HasPassed());
  EXPECT_TRUE(deadline.By(std::chrono::steady_clock::now()).HasPassed());
  EXPECT_FALSE(deadline.HasPassed()) << "the other one is unchanged";
  end_ns = std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
  EXPECT_TRUE(deadline.HasPassed());
}

}  // namespace
}  // namespace strobe
