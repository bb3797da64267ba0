#include "strobe/worker/shared/shared_contexts.h"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>

namespace strobe::internal {
namespace {

constexpr std::uint64_t kNumber = kOverflowContext + 1;

LabelSet Request(std::int64_t number) { return LabelSet({{"request", number}}); }

TEST(SharedLabels, SetsComeBackByTheirNumbers) {
  const auto labels = std::make_unique<SharedLabels>();
  const LabelSet mixed({{"endpoint", "/pay"}, {"shard", std::int64_t{-7}}, {"empty", ""}});
  const LabelSet longest(
      {{std::string(LabelSet::kMaxKeyBytes, 'k'), std::string(LabelSet::kMaxTextBytes, 't')}});
  labels->Add(kNumber, mixed);
  labels->Add(SharedLabels::kNumbers - 1, longest);
  EXPECT_EQ(labels->Find(kNumber), mixed);
  EXPECT_EQ(labels->Find(SharedLabels::kNumbers - 1), longest);
  EXPECT_EQ(labels->Find(kNumber + 1), std::nullopt);
  labels->Add(kNumber, longest);
  EXPECT_EQ(labels->Find(kNumber), mixed) << "a set never changes";
  labels->Add(SharedLabels::kNumbers, mixed);
  EXPECT_EQ(labels->Find(SharedLabels::kNumbers), std::nullopt);
  EXPECT_EQ(labels->Find(~std::uint64_t{0}), std::nullopt);
}

TEST(SharedLabels, ASetBeyondTheRoomIsLeftOut) {
  const auto labels = std::make_unique<SharedLabels>();
  const LabelSet large({{"key", std::string(LabelSet::kMaxTextBytes, 't')}});
  std::uint64_t number = kNumber;
  for (; number < SharedLabels::kNumbers; ++number) {
    labels->Add(number, large);
    if (!labels->Find(number)) break;
  }
  EXPECT_GT(number, SharedLabels::kBytes / (2 * LabelSet::kMaxTextBytes));
  ASSERT_LT(number, SharedLabels::kNumbers) << "the room is for fewer such sets";
  for (int i = 0; i < 3; ++i) labels->Add(number, large);
  EXPECT_EQ(labels->Find(number), std::nullopt);
  EXPECT_EQ(labels->Find(kNumber), large);
}

// The program may write anything at any time: a set is whole, or there is none.
TEST(SharedLabels, AnyBytesAreRead) {
  const auto labels = std::make_unique<SharedLabels>();
  std::mt19937_64 random(4711);
  auto* const bytes = reinterpret_cast<char*>(labels.get());
  for (std::size_t i = 0; i + sizeof(std::uint64_t) <= sizeof(SharedLabels); i += 8) {
    // Many places and lengths are small, as good ones are.
    std::uint64_t word = 0x003F'FFFF'0000'1FFF;
    for (int n = 0; n < 3; ++n) word &= random();
    std::memcpy(bytes + i, &word, sizeof(word));
  }
  std::size_t found = 0;
  for (std::uint64_t number = 0; number < SharedLabels::kNumbers; ++number) {
    const std::optional<LabelSet> set = labels->Find(number);
    found += set ? 1 : 0;
    EXPECT_LE(set.value_or(LabelSet()).labels().size(), LabelSet::kMaxLabels);
  }
  EXPECT_GT(found, 0U) << "the bytes get as far as a set";
}

TEST(SharedLabels, AreReadWhileTheyAreWritten) {
  const auto labels = std::make_unique<SharedLabels>();
  constexpr std::int64_t kSets = 2000;
  std::thread writes([&] {
    for (std::int64_t i = 0; i < kSets; ++i)
      labels->Add(kNumber + static_cast<std::uint64_t>(i), Request(i));
  });
  for (std::int64_t i = 0; i < kSets;) {
    const std::optional<LabelSet> set = labels->Find(kNumber + static_cast<std::uint64_t>(i));
    if (!set) continue;
    ASSERT_EQ(*set, Request(i));
    ++i;
  }
  writes.join();
}

}  // namespace
}  // namespace strobe::internal
