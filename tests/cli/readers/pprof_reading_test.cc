#include "../../../src/cli/readers/pprof_reading.h"

#include <string>
#include <string_view>
#include <utility>

#include "../made_profile.h"
#include "../pprof_bytes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::SizeIs;

absl::StatusOr<LoadedProfile> ReadParts(PprofBytes& bytes) {
  const std::string all = bytes.Take();
  Input input(ReadBytes(all));
  PprofReading reading;
  if (absl::Status status = reading.Read(input); !status.ok()) return status;
  return reading.Finish();
}

// The error says that the file is damaged, and `what` is.
void ExpectDamaged(PprofBytes bytes, std::string_view what) {
  const absl::Status status = ReadParts(bytes).status();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument) << what;
  EXPECT_THAT(std::string(status.message()), HasSubstr("damaged"));
  EXPECT_THAT(std::string(status.message()), HasSubstr(std::string(what)));
}

PprofBytes WithStrings() {
  PprofBytes bytes;
  bytes.Strings({"", "samples", "count", "f", "g"}).Type(1, 2);
  return bytes;
}

TEST(DamagedTest, IsAnInvalidArgument) {
  EXPECT_EQ(Damaged("x").code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Damaged("x").message()), HasSubstr("damaged one: x"));
}

TEST(PprofReadingTest, PartsComeInAnyOrder) {
  PprofBytes forward = WithStrings();
  forward.Function(9, 3, 3).Function(5, 4, 4);
  forward.Location(1, 0, 0, {{9, 0}}).Location(2, 0, 0, {{5, 0}});
  forward.Sample({2, 1}, {7});
  PprofBytes backward;
  backward.Sample({2, 1}, {7});
  backward.Location(2, 0, 0, {{5, 0}}).Location(1, 0, 0, {{9, 0}});
  backward.Function(5, 4, 4).Function(9, 3, 3);
  backward.Type(1, 2).Strings({"", "samples", "count", "f", "g"});
  for (PprofBytes* bytes : {&forward, &backward}) {
    const absl::StatusOr<LoadedProfile> loaded = ReadParts(*bytes);
    ASSERT_TRUE(loaded.ok()) << loaded.status();
    EXPECT_THAT(RowsOf(*loaded), ElementsAre("f;g 7"));
    EXPECT_THAT(loaded->profile.value_types, ElementsAre(ValueType{"samples", "count"}));
  }
}

TEST(PprofReadingTest, NumbersMayBePackedOrNot) {
  PprofBytes bytes = WithStrings();
  bytes.Function(1, 3, 3).Location(1, 0, 0, {{1, 0}});
  bytes.Add(kSample, {{1, 1}, {1, 1}, {2, 7}});
  const absl::StatusOr<LoadedProfile> loaded = ReadParts(bytes);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(RowsOf(*loaded), ElementsAre("f;f 7"));
}

TEST(PprofReadingTest, EqualRowsAddUp) {
  PprofBytes bytes = WithStrings();
  bytes.Function(1, 3, 3).Location(1, 0, 0, {{1, 0}});
  bytes.Sample({1}, {7}).Sample({1}, {-2}).Sample({}, {1});
  const absl::StatusOr<LoadedProfile> loaded = ReadParts(bytes);
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_THAT(RowsOf(*loaded), ElementsAre("f 5", " 1"));
}

TEST(PprofReadingTest, FieldsOfANewerVersionAreLeftOut) {
  PprofBytes bytes = WithStrings();
  bytes.AddNumber(100, 5).AddBytes(101, "whatever");
  EXPECT_TRUE(ReadParts(bytes).ok());
}

TEST(PprofReadingTest, RefusesWhatIsMissingOrThereTwice) {
  ExpectDamaged(WithStrings().Sample({1}, {7}), "location");
  ExpectDamaged(WithStrings().Location(1, 0, 0, {}).Location(1, 0, 0, {}), "field 4");
  ExpectDamaged(WithStrings().Location(1, 0, 0, {{1, 0}}), "function");
  ExpectDamaged(WithStrings().Function(1, 3, 3).Function(1, 4, 4), "field 5");
  ExpectDamaged(WithStrings().Location(1, 2, 0x1000, {}), "mapping");
  ExpectDamaged(WithStrings().Mapping(1, 0, 1, 0, 3).Mapping(1, 0, 1, 0, 3), "field 3");
  ExpectDamaged(WithStrings().Function(1, 5, 3), "string");
  ExpectDamaged(PprofBytes().Strings({""}), "values");  // no value types
}

TEST(PprofReadingTest, RefusesTheIdZero) {
  ExpectDamaged(WithStrings().Location(0, 0, 0, {}), "field 4");
  ExpectDamaged(WithStrings().Function(0, 3, 3), "field 5");
  ExpectDamaged(WithStrings().Mapping(0, 0, 1, 0, 3), "field 3");
  ExpectDamaged(WithStrings().Sample({0}, {7}), "field 2");
}

TEST(PprofReadingTest, RefusesSamplesWithOtherValuesThanTypes) {
  ExpectDamaged(WithStrings().Sample({}, {1}).Sample({}, {1, 2}), "field 2");
  ExpectDamaged(WithStrings().Sample({}, {1, 2}), "values");
}

TEST(PprofReadingTest, RefusesBytesThatAreNoMessage) {
  const auto error_of = [](std::string_view bytes) {
    Input input(ReadBytes(bytes));
    return std::string(PprofReading().Read(input).message());
  };
  EXPECT_THAT(error_of("\x80"), HasSubstr("no number"));
  EXPECT_THAT(error_of(std::string_view("\x02\x00", 2)), HasSubstr("kind")) << "the field 0";
  EXPECT_THAT(error_of("\x09........"), HasSubstr("kind")) << "a number of 8 bytes";
  EXPECT_THAT(error_of("\x0A\x80"), HasSubstr("cut off"));
  EXPECT_THAT(error_of("\x0A\x05one"), HasSubstr("cut off"));
  EXPECT_THAT(error_of("\x0A\xFF\xFF\xFF\xFF\x0F"), HasSubstr("16 MiB"));
  EXPECT_EQ(error_of(""), "");
}

}  // namespace
}  // namespace strobe::internal
