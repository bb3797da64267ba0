#include "strobe/runtime/drain/recording_columns.h"

#include "../manual_traits.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Providers = testing::ManualTraits::Providers;

constexpr auto kTypes = Providers::AllValueTypes();  // samples, cpu, wall, off_cpu

RecordingColumns ColumnsOf(const SamplingOptions& options) {
  Providers providers(options);
  return EnabledColumns(providers);
}

TEST(RecordingColumns, AreThoseOfProvidersThatAreEnabled) {
  EXPECT_THAT(IndicesOf(ColumnsOf({.wall_frequency_hz = 10})), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(IndicesOf(ColumnsOf({})), ElementsAre(0, 1));
  const RecordingColumns wall = ColumnsOf({.cpu_frequency_hz = 0, .wall_frequency_hz = 10});
  EXPECT_THAT(IndicesOf(wall), ElementsAre(2, 3));
  EXPECT_THAT(ValueTypesOf(wall, kTypes),
              ElementsAre(ValueType{"wall", "nanoseconds"}, ValueType{"off_cpu", "nanoseconds"}));
  EXPECT_THAT(ColumnsOf({.cpu_frequency_hz = 0}), ::testing::IsEmpty());
}

TEST(RecordingColumns, TheDefaultIsTheLastOfTheFirstProvider) {
  const RecordingColumns all = ColumnsOf({.wall_frequency_hz = 10});
  EXPECT_EQ(DefaultColumn(all), 1u) << "cpu, and not the count before it";
  EXPECT_EQ(DefaultColumn({all[0], all[2]}), 0u);
  EXPECT_EQ(DefaultColumn({all[1], all[2]}), 0u);
  EXPECT_EQ(DefaultColumn({all[2]}), 0u);
  EXPECT_EQ(DefaultColumn({}), 0u);
}

TEST(RecordingColumns, AreSelectedByName) {
  const RecordingColumns all = ColumnsOf({.wall_frequency_hz = 10});
  EXPECT_THAT(IndicesOf(*SelectColumns(all, kTypes, {})), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(IndicesOf(*SelectColumns(all, kTypes, {"wall", "cpu", "wall"})), ElementsAre(1, 2));
  for (const char* name : {"wall", "heap", ""}) {
    const absl::Status status = SelectColumns(ColumnsOf({}), kTypes, {"cpu", name}).status();
    EXPECT_TRUE(absl::IsInvalidArgument(status)) << status;
    EXPECT_EQ(status.message(),
              "value_types: \"" + std::string(name) + "\" is not enabled; there are samples, cpu");
  }
}

}  // namespace
}  // namespace strobe::internal
