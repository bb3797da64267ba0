#include "strobe/runtime/drain/sample_intake.h"

#include <array>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "strobe/testing/profile_check.h"

namespace strobe::internal {
namespace {

using Outcome = SampleIntake::Outcome;
using Values = SampleIntake::Values;

// As of a provider with two columns, of which records have the first, and one with one.
constexpr ValueLayout kLayout{
    .value_count = 3, .recorded = 0b110, .sources = {1, 1, 2}, .is_count = {true}};

// A record's bytes, aligned.
std::vector<std::uint64_t> Record(std::uint16_t amounts, const std::vector<std::uint64_t>& words,
                                  const std::vector<Address>& frames, std::size_t shared = 0,
                                  std::uint8_t flags = 0, bool has_slice = false) {
  const RecordHeader header{.module_generation = 1,
                            .frame_count = static_cast<std::uint16_t>(frames.size()),
                            .shared_count = static_cast<std::uint16_t>(shared),
                            .amounts = amounts,
                            .flags = flags,
                            .slice_bytes = has_slice ? 8U : 0U};
  std::vector<std::uint64_t> bytes(sizeof(header) / 8);
  std::memcpy(bytes.data(), &header, sizeof(header));
  bytes.insert(bytes.end(), words.begin(), words.end());
  bytes.insert(bytes.end(), frames.begin(), frames.end());
  if (has_slice) bytes.push_back(0);
  return bytes;
}

// Samples by the leaf's address and the request's number.
std::map<std::pair<Address, std::int64_t>, std::int64_t> Samples(const Profile& profile) {
  std::map<std::pair<Address, std::int64_t>, std::int64_t> samples;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const Frame& leaf = profile.frames[profile.stacks[profile.samples[i].stack].frame];
    samples[{leaf.address, profile.Labels(i).Number("request")}] += profile.Values(i)[1];
  }
  return samples;
}

class SampleIntakeTest : public ::testing::Test {
 protected:
  SampleIntake::Result Add(const std::vector<std::uint64_t>& record, bool can_finish = true) {
    return intake_.Add(thread_, std::as_bytes(std::span(record)),
                       [&](std::span<const std::byte> /*slice*/, StackDelta& stack) {
                         stack.end = StackEnd::kCoroutine;
                         return can_finish ? std::nullopt : std::optional<Address>(0x77);
                       });
  }
  Profile Take() {
    Profile profile;
    profile.value_types = {{"samples", "count"}, {"cpu", "ones"}, {"wall", "ones"}};
    FillProfile(intake_.recorder().continuous().Take(labels_, {}).samples, profile);
    EXPECT_EQ(testing::CheckProfile(profile), "");
    return profile;
  }

  LabelTable labels_;
  SampleIntake intake_{kLayout, {0, 1, 2}, std::size_t{1} << 20, {}};
  std::uint32_t thread_ = intake_.AddThread(7, "worker");
};

TEST_F(SampleIntakeTest, AnAmountBecomesTheColumnsThatItStandsFor) {
  const SampleIntake::Result result = Add(Record(0b110, {30, 500}, {0x22, 0x11}));
  EXPECT_EQ(result.outcome, Outcome::kAdded);
  EXPECT_EQ(result.values, (Values{1, 30, 500}));
  EXPECT_TRUE(intake_.ExtendLast(thread_, {0, 0, 40}, kNoContext, 9));
  const Profile profile = Take();
  ASSERT_EQ(profile.samples.size(), 1u);
  EXPECT_EQ(profile.values, (std::vector<std::int64_t>{1, 30, 540}));
  EXPECT_EQ(profile.Labels(0), ThreadLabels(7, "worker"));
}

TEST_F(SampleIntakeTest, ACountCountsTheSamplesThatHaveAnAmount) {
  EXPECT_EQ(Add(Record(0b010, {30}, {0x22, 0x11})).values, (Values{1, 30, 0}));
  EXPECT_EQ(Add(Record(0b010, {7}, {}, 2)).values, (Values{1, 7, 0}));
  EXPECT_EQ(Add(Record(0b100, {500}, {}, 2)).values, (Values{0, 0, 500}));
  const Profile profile = Take();
  EXPECT_EQ(profile.values, (std::vector<std::int64_t>{2, 37, 500}));
}

TEST_F(SampleIntakeTest, OneStackUnderTwoContextsIsTwoRows) {
  const std::uint64_t request = labels_.Intern({{"request", std::int64_t{5}}});
  EXPECT_EQ(Add(Record(0b10, {1}, {0x22, 0x11})).outcome, Outcome::kAdded);
  EXPECT_EQ(Add(Record(0b10, {request, 2}, {}, 2, kRecordHasContext)).outcome, Outcome::kAdded);
  EXPECT_EQ(Add(Record(0b10, {4}, {}, 2)).outcome, Outcome::kAdded);
  EXPECT_FALSE(intake_.ExtendLast(thread_, {0, 8}, request, 0));
  EXPECT_EQ(Samples(Take()), (std::map<std::pair<Address, std::int64_t>, std::int64_t>{
                                 {{0x22, 0}, 5}, {{0x22, 5}, 2}}));
}

TEST_F(SampleIntakeTest, ARecordsTimeIsKeptWithItsValues) {
  EXPECT_EQ(Add(Record(0b110, {70, 30, 500}, {0x22, 0x11}, 0, kRecordHasTime)).outcome,
            Outcome::kAdded);
  EXPECT_EQ(Add(Record(0b10, {4}, {}, 2)).outcome, Outcome::kAdded);
  EXPECT_TRUE(intake_.ExtendLast(thread_, {0, 0, 40}, kNoContext, 90));
  const Profile profile = Take();
  ASSERT_EQ(profile.moments.size(), 2u);
  EXPECT_EQ(profile.moments[0].time_ns, 70);
  EXPECT_EQ(profile.moments[1].time_ns, 90);
  EXPECT_EQ(profile.moment_values, (std::vector<std::int64_t>{1, 30, 500, 0, 0, 40}));
}

TEST_F(SampleIntakeTest, ARecordThatWaitsForATableAddsNothing) {
  const auto record = Record(0b10, {1}, {0x22}, 0, 0, /*has_slice=*/true);
  const SampleIntake::Result waiting = Add(record, /*can_finish=*/false);
  EXPECT_EQ(waiting.outcome, Outcome::kMissingTable);
  EXPECT_EQ(waiting.missing_pc, Address{0x77});
  EXPECT_TRUE(Take().samples.empty());
  const SampleIntake::Result result = Add(record);
  EXPECT_EQ(result.outcome, Outcome::kAdded);
  EXPECT_EQ(result.end, StackEnd::kCoroutine);
  EXPECT_EQ(Take().samples.size(), 1u);
}

TEST_F(SampleIntakeTest, NothingSharesWithWhatCouldNotBeRead) {
  EXPECT_EQ(Add(Record(0b10, {1}, {0x22, 0x11})).outcome, Outcome::kAdded);
  EXPECT_EQ(Add(Record(0b01, {1}, {0x22, 0x11})).outcome, Outcome::kUnreadable);
  EXPECT_EQ(Add(Record(0b10, {1}, {0x33}, 1)).outcome, Outcome::kOverflow);
}

TEST_F(SampleIntakeTest, TheNumberOfAnEndedThreadIsUsedAgain) {
  const auto no_walk = [](std::span<const std::byte> /*slice*/, StackDelta& /*stack*/) {
    return std::optional<Address>();
  };
  const auto record = Record(0b10, {2}, {0x22});
  const std::uint32_t other = intake_.AddThread(8, "other");
  EXPECT_EQ(intake_.Add(other, std::as_bytes(std::span(record)), no_walk).outcome, Outcome::kAdded);
  intake_.RemoveThread(other);
  EXPECT_EQ(intake_.AddThread(9, "third"), other);
  EXPECT_EQ(intake_.Add(other, std::as_bytes(std::span(record)), no_walk).outcome, Outcome::kAdded);
  EXPECT_EQ(Take().threads.size(), 3u);
}

}  // namespace
}  // namespace strobe::internal
