// The conformance suite of Exporter. The suite reads what was delivered, so it needs a harness:
//
//   struct MyHarness {                              // constructed anew for each test
//     using Exporter = MyExporter;
//     MyExporter Make();                            // one that delivers to the harness
//     std::vector<std::string> Delivered();         // everything that arrived, whole or not
//     std::string Read(const std::string& where);   // what arrived at the place that Export named
//     void Break();                                 // makes every delivery fail
//     void Mend();                                  // ends Break
//   };
//   // In namespace strobe::testing:
//   INSTANTIATE_TYPED_TEST_SUITE_P(MyExporter, ExporterConformance, MyHarness);
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "strobe/export/exporter.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {

template <class H>
class ExporterConformance : public ::testing::Test {
 protected:
  using ExporterUnderTest = typename H::Exporter;
  static_assert(Exporter<ExporterUnderTest>);

  absl::StatusOr<std::string> Export(ExporterUnderTest& exporter, std::string_view bytes,
                                     std::uint64_t sequence = 0) {
    Profile profile = ProfileHead();
    profile.sequence = sequence;
    return exporter.Export(ExportRequest{bytes, ".pb.gz", "application/octet-stream", profile, {}});
  }

  H harness_;
};
TYPED_TEST_SUITE_P(ExporterConformance);

// Nothing is created before the first Export.
TYPED_TEST_P(ExporterConformance, ConstructionHasNoSideEffects) {
  { [[maybe_unused]] const auto exporter = this->harness_.Make(); }
  EXPECT_TRUE(this->harness_.Delivered().empty());
}

// The bytes arrive whole, and Export returns their place: for any bytes, none, and many.
TYPED_TEST_P(ExporterConformance, DeliversTheBytesAndSaysWhere) {
  typename TypeParam::Exporter exporter = this->harness_.Make();
  std::string every_byte;
  for (int i = 0; i < 256; ++i) every_byte += static_cast<char>(i);
  std::uint64_t sequence = 0;
  for (const std::string& bytes :
       {std::string("profile"), std::string(), every_byte, std::string(3'000'000, 'x')}) {
    const absl::StatusOr<std::string> where = this->Export(exporter, bytes, sequence++);
    ASSERT_TRUE(where.ok()) << where.status().ToString();
    EXPECT_FALSE(where->empty());
    EXPECT_EQ(this->harness_.Read(*where), bytes);
  }
}

// Each period arrives in a place of its own. Later periods do not change it.
TYPED_TEST_P(ExporterConformance, KeepsPeriodsApart) {
  typename TypeParam::Exporter exporter = this->harness_.Make();
  std::set<std::string> places;
  const absl::StatusOr<std::string> first = this->Export(exporter, "0", 0);
  ASSERT_TRUE(first.ok()) << first.status().ToString();
  places.insert(*first);
  for (std::uint64_t i = 1; i < 5; ++i) {
    const absl::StatusOr<std::string> where = this->Export(exporter, std::to_string(i), i);
    ASSERT_TRUE(where.ok()) << where.status().ToString();
    places.insert(*where);
  }
  EXPECT_EQ(places.size(), 5U);
  EXPECT_EQ(this->harness_.Read(*first), "0");
}

// A failure is a status with a message. Nothing has arrived, not even a part. The same profile can
// be exported afterwards.
TYPED_TEST_P(ExporterConformance, FailureLeavesNothingAndCanBeRetried) {
  typename TypeParam::Exporter exporter = this->harness_.Make();
  this->harness_.Break();
  for (int attempt = 0; attempt < 2; ++attempt) {
    const absl::StatusOr<std::string> failed = this->Export(exporter, "profile");
    ASSERT_FALSE(failed.ok()) << "delivered to " << *failed << ", though the harness is broken";
    EXPECT_FALSE(failed.status().message().empty());
    EXPECT_FALSE(RefusesProfile(failed.status()))
        << "the profile would be dropped, not tried again: " << failed.status();
  }
  this->harness_.Mend();
  EXPECT_TRUE(this->harness_.Delivered().empty());
  const absl::StatusOr<std::string> where = this->Export(exporter, "profile");
  ASSERT_TRUE(where.ok()) << where.status().ToString();
  EXPECT_EQ(this->harness_.Read(*where), "profile");
  EXPECT_EQ(this->harness_.Delivered().size(), 1U);
}

REGISTER_TYPED_TEST_SUITE_P(ExporterConformance, ConstructionHasNoSideEffects,
                            DeliversTheBytesAndSaysWhere, KeepsPeriodsApart,
                            FailureLeavesNothingAndCanBeRetried);

}  // namespace strobe::testing
