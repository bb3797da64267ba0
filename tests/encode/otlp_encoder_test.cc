#include "strobe/encode/otlp_encoder.h"

#include <cstdint>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/testing/encoder_conformance.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {

INSTANTIATE_TYPED_TEST_SUITE_P(Otlp, EncoderConformance, OtlpEncoder);

namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;
using ::testing::UnorderedElementsAre;

// A message whose meaning the test knows: the values of each field, in order.
class Message {
 public:
  explicit Message(std::string_view bytes) {
    while (!bytes.empty()) {
      const std::uint64_t tag = Varint(bytes);
      std::string& value = fields_[tag >> 3].emplace_back();
      if ((tag & 7) == 2) {
        value = Cut(bytes, Varint(bytes));
      } else if ((tag & 7) == 1) {
        std::uint64_t number = 0;
        const std::string fixed = Cut(bytes, 8);
        for (std::size_t i = fixed.size(); i-- > 0;)
          number = number << 8 | static_cast<unsigned char>(fixed[i]);
        value = std::to_string(number);
      } else {
        EXPECT_EQ(tag & 7, 0U) << "wire type";
        value = std::to_string(static_cast<std::int64_t>(Varint(bytes)));
      }
    }
  }

  [[nodiscard]] const std::vector<std::string>& All(int field) const {
    static const std::vector<std::string>* const kNothing = new std::vector<std::string>;
    const auto found = fields_.find(static_cast<std::uint64_t>(field));
    return found == fields_.end() ? *kNothing : found->second;
  }
  [[nodiscard]] std::string Text(int field) const {
    return All(field).empty() ? "" : All(field).front();
  }
  [[nodiscard]] std::int64_t Number(int field) const {
    return All(field).empty() ? 0 : std::stoll(All(field).front());
  }
  [[nodiscard]] Message Child(int field, std::size_t index = 0) const {
    EXPECT_LT(index, All(field).size()) << "field " << field;
    return Message(index < All(field).size() ? All(field)[index] : "");
  }
  [[nodiscard]] std::vector<std::int64_t> Packed(int field) const {
    std::vector<std::int64_t> numbers;
    const std::string text = Text(field);
    for (std::string_view rest = text; !rest.empty();)
      numbers.push_back(static_cast<std::int64_t>(Varint(rest)));
    return numbers;
  }

 private:
  static std::uint64_t Varint(std::string_view& bytes) {
    std::uint64_t value = 0;
    for (int shift = 0; !bytes.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.front());
      bytes.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7FU} << shift;
      if (byte < 0x80) break;
    }
    return value;
  }
  static std::string Cut(std::string_view& bytes, std::size_t count) {
    EXPECT_LE(count, bytes.size());
    const std::string cut(bytes.substr(0, count));
    bytes.remove_prefix(cut.size());
    return cut;
  }

  std::map<std::uint64_t, std::vector<std::string>> fields_;
};

// Field numbers stand here once more, after the schema, so that the test does not repeat the
// encoder's mistakes.
class Read {
 public:
  explicit Read(const SampleProfile& sample, const OtlpOptions& options = {})
      : request_(OtlpEncoder(options).Encode(sample.profile, sample.symbols).value_or("")) {}

  [[nodiscard]] Message Resource() const { return request_.Child(1).Child(1); }
  [[nodiscard]] std::vector<std::string> Profiles() const {
    return request_.Child(1).Child(2).All(2);
  }
  [[nodiscard]] Message Table(int field, std::int64_t index) const {
    return request_.Child(2).Child(field, static_cast<std::size_t>(index));
  }
  [[nodiscard]] const std::vector<std::string>& Entries(int field) const {
    return entries_[field] = request_.Child(2).All(field);
  }
  [[nodiscard]] std::string Text(std::int64_t index) const {
    return Entries(5).at(static_cast<std::size_t>(index));
  }
  [[nodiscard]] std::map<std::string, std::string> Attributes(
      const std::vector<std::int64_t>& indices) const {
    std::map<std::string, std::string> attributes;
    for (const std::int64_t index : indices) {
      const Message entry = Table(6, index);
      const Message value = entry.Child(2);
      attributes[Text(entry.Number(1))] = value.All(1).empty() ? value.Text(3) : value.Text(1);
    }
    return attributes;
  }
  // The functions' names, leaf first.
  [[nodiscard]] std::vector<std::string> Stack(std::int64_t index) const {
    std::vector<std::string> names;
    for (const std::int64_t number : Table(7, index).Packed(1)) {
      const Message location = Table(2, number);
      for (const std::string& line : location.All(3))
        names.push_back(Text(Table(3, Message(line).Number(1)).Number(1)));
    }
    return names;
  }

 private:
  Message request_;
  mutable std::map<int, std::vector<std::string>> entries_;
};

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
  const Message stack = read.Table(7, 1);
  const Message busy = read.Table(2, stack.Packed(1)[0]);
  EXPECT_EQ(busy.Number(2), 0x402345);
  EXPECT_EQ(busy.Child(3, 2).Number(2), 25);
  EXPECT_EQ(busy.Child(3, 2).Number(3), 3);
  EXPECT_THAT(read.Attributes(busy.Packed(4)), ElementsAre(Pair("profile.frame.type", "native")));
  const Message mapping = read.Table(1, busy.Number(1));
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
