#include "strobe/encode/otlp_encoder.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "otlp_reader.h"
#include "strobe/testing/encoder_conformance.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {

INSTANTIATE_TYPED_TEST_SUITE_P(Otlp, EncoderConformance, OtlpEncoder);

namespace {

using ::testing::ElementsAre;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

using Message = OtlpMessage;
using Read = OtlpReader;

std::int64_t Sum(const Message& profile) {
  std::int64_t sum = 0;
  for (const std::string& sample : profile.All(2)) {
    const std::vector<std::int64_t> values = Message(sample).Packed(4);
    EXPECT_EQ(values.size(), 1U);
    sum += values.at(0);
  }
  return sum;
}

TEST(OtlpEncoderTest, AProfileForEachValueTypeWithTheColumnsSum) {
  const Read read(SmallProfile());
  ASSERT_EQ(read.Profiles().size(), 3U);
  const std::vector<std::int64_t> sums{105, 1'053'000'000, 300'000'000};
  const std::vector<std::string> types{"samples", "cpu", "wall"};
  for (std::size_t i = 0; i < 3; ++i) {
    const Message profile(read.Profiles()[i]);
    EXPECT_EQ(Sum(profile), sums[i]);
    EXPECT_EQ(read.Text(profile.Child(1).Number(1)), types[i]);
    EXPECT_EQ(profile.Number(3), 1'700'000'000'123'456'789);
    EXPECT_EQ(profile.Number(4), 60'000'000'000);
    EXPECT_EQ(read.Text(profile.Child(5).Number(1)), "cpu");
    EXPECT_EQ(read.Text(profile.Child(5).Number(2)), "nanoseconds");
    EXPECT_EQ(profile.Number(6), 10'000'000);
  }
}

TEST(OtlpEncoderTest, SamplesHaveStacksThreadsAndLabels) {
  const Read read(DetailedProfile());
  const Message first = Message(read.Profiles()[0]).Child(2, 0);
  EXPECT_THAT(read.Stack(first.Number(1)),
              ElementsAre("sample::Step", "sample::Loop", "sample::Busy", "main"));
  EXPECT_THAT(read.Attributes(first.Packed(2)),
              UnorderedElementsAre(Pair("thread.id", "4242"), Pair("thread.name", "main")));
  const Message second = Message(read.Profiles()[0]).Child(2, 1);
  EXPECT_THAT(read.Attributes(second.Packed(2)),
              UnorderedElementsAre(Pair("thread.id", "4242"), Pair("thread.name", "main"),
                                   Pair("request", "check;out"), Pair("batch size", "7")));
}

TEST(OtlpEncoderTest, LocationsHaveLinesMappingsAndAddresses) {
  const Read read(DetailedProfile());
  const Message& stack = read.Table(7, 1);
  const Message busy = read.Table(2, stack.Packed(1)[0]);
  EXPECT_EQ(busy.Number(2), 0x402345);
  EXPECT_EQ(busy.Child(3, 2).Number(2), 25);
  EXPECT_EQ(busy.Child(3, 2).Number(3), 3);
  EXPECT_THAT(read.Attributes(busy.Packed(4)), ElementsAre(Pair("profile.frame.type", "native")));
  const Message& mapping = read.Table(1, busy.Number(1));
  EXPECT_EQ(mapping.Number(1), 0x400000);
  EXPECT_EQ(mapping.Number(2), 0x500000);
  EXPECT_EQ(read.Text(mapping.Number(4)), "/opt/sample/bin/sample_program");
  EXPECT_THAT(read.Attributes(mapping.Packed(5)),
              ElementsAre(Pair("process.executable.build_id.gnu",
                               "00112233445566778899aabbccddeeff00112233")));
  const Message function = read.Table(3, busy.Child(3, 2).Number(1));
  EXPECT_EQ(read.Text(function.Number(2)), "sample::Busy(int, std::vector<int> const&)");
  EXPECT_EQ(read.Text(function.Number(3)), "/src/sample/busy.cc");
  EXPECT_EQ(function.Number(4), 20);
}

TEST(OtlpEncoderTest, EntryZeroIsEmptyAndTheOthersAreDistinct) {
  SampleProfile sample = DetailedProfile();
  // Constructors have two symbols of one name.
  sample.symbols.functions[2] = sample.symbols.functions[0];
  sample.symbols.functions[2].system_name = "_ZN1TC2Ev";
  sample.profile.modules.push_back({.start = 1, .limit = 2, .path = "idle", .build_id = {}});
  const Read read(sample);
  for (int table = 1; table <= 7; ++table) {
    const std::vector<std::string>& entries = read.Entries(table);
    ASSERT_FALSE(entries.empty()) << table;
    EXPECT_EQ(entries[0], "") << table;
    EXPECT_EQ(std::set<std::string>(entries.begin(), entries.end()).size(), entries.size())
        << table;
  }
  EXPECT_EQ(read.Entries(1).size(), 3U) << "the idle module is not there";
}

TEST(OtlpEncoderTest, TheResourceIsTheServiceAndItsProcess) {
  const auto attributes = [](const Message& resource) {
    std::map<std::string, std::string> result;
    for (const std::string& text : resource.All(1)) {
      const Message value = Message(text).Child(2);
      result[Message(text).Text(1)] = value.All(1).empty() ? value.Text(3) : value.Text(1);
    }
    return result;
  };
  EXPECT_THAT(attributes(Read(SmallProfile()).Resource()),
              UnorderedElementsAre(Pair("service.name", "unknown_service:sample_program"),
                                   Pair("process.pid", "4242"),
                                   Pair("process.executable.name", "sample_program")));
  EXPECT_THAT(
      attributes(
          Read(SmallProfile(), {.resource = {{"service.name", "shop"}, {"zone", "a"}}}).Resource()),
      UnorderedElementsAre(Pair("service.name", "shop"), Pair("zone", "a"),
                           Pair("process.pid", "4242"),
                           Pair("process.executable.name", "sample_program")));
  SampleProfile sample = SmallProfile();
  sample.profile.machine =
      LabelSet({{"cpus", 4}, {"architecture", "x86_64"}, {"container_id", "abc"}});
  EXPECT_THAT(attributes(Read(sample, {.resource = {{"container.id", "own"}}}).Resource()),
              UnorderedElementsAre(Pair("service.name", "unknown_service:sample_program"),
                                   Pair("process.pid", "4242"),
                                   Pair("process.executable.name", "sample_program"),
                                   Pair("strobe.cpus", "4"), Pair("host.arch", "amd64"),
                                   Pair("container.id", "own")));
}

TEST(OtlpEncoderTest, ALabelsKeyHasOneValue) {
  SampleProfile sample = SmallProfile();
  sample.profile.label_sets[0] =
      LabelSet({{"thread.id", std::string("mine")}}).Joined(sample.profile.label_sets[0]);
  const Read read(sample);
  const Message first = Message(read.Profiles()[0]).Child(2, 0);
  EXPECT_THAT(read.Attributes(first.Packed(2)),
              UnorderedElementsAre(Pair("thread.id", "4242"), Pair("thread.name", "main")));
  EXPECT_EQ(first.Packed(2).size(), 2U);
}

}  // namespace
}  // namespace strobe::testing
