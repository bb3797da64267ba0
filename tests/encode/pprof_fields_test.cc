#include "../../src/encode/pprof/pprof_fields.h"

#include <optional>
#include <set>
#include <string>

#include "../../src/encode/proto_reader.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/testing/profiles.h"

namespace strobe::internal {
namespace {

// The numbers of profile.proto, which has them one by one.
TEST(PprofFieldsTest, AreThoseOfTheFormat) {
  EXPECT_EQ(kSampleType, 1U);
  EXPECT_EQ(kSample, 2U);
  EXPECT_EQ(kMapping, 3U);
  EXPECT_EQ(kLocation, 4U);
  EXPECT_EQ(kFunction, 5U);
  EXPECT_EQ(kStringTable, 6U);
  EXPECT_EQ(kDropFrames, 7U);
  EXPECT_EQ(kKeepFrames, 8U);
  EXPECT_EQ(kTimeNs, 9U);
  EXPECT_EQ(kDurationNs, 10U);
  EXPECT_EQ(kPeriodType, 11U);
  EXPECT_EQ(kPeriod, 12U);
  EXPECT_EQ(kComment, 13U);
  EXPECT_EQ(kDefaultSampleType, 14U);
  EXPECT_EQ(kDocUrl, 15U);
}

TEST(PprofFieldsTest, TheEncoderWritesAllThatAProfileHas) {
  const testing::SampleProfile sample = testing::SmallProfile();
  const std::string bytes =
      PprofEncoder().EncodeUncompressed(sample.profile, sample.symbols).value_or("");
  std::set<std::uint32_t> fields;
  ProtoReader reader(bytes);
  while (reader.Next()) fields.insert(reader.field());
  EXPECT_TRUE(reader.ok());
  EXPECT_THAT(fields, ::testing::ElementsAre(kSampleType, kSample, kMapping, kLocation, kFunction,
                                             kStringTable, kTimeNs, kDurationNs, kPeriodType,
                                             kPeriod, kComment, kDefaultSampleType));
}

}  // namespace
}  // namespace strobe::internal
