#include "strobe/provider/provider_list.h"

#include <memory>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/provider/cpu_time_provider.h"
#include "strobe/provider/off_cpu_time_provider.h"
#include "strobe/provider/wall_time_provider.h"
#include "strobe/testing/fakes/archetypes.h"

namespace strobe {
namespace {

using ::testing::ElementsAre;
using Both = ProviderList<CpuTimeProvider, WallTimeProvider>;
using Events = testing::ArchetypeEventProvider;
using Three = ProviderList<WallTimeProvider, testing::ArchetypeProvider, CpuTimeProvider>;

std::vector<std::size_t> EnabledIndices(auto list) {
  std::vector<std::size_t> indices;
  list->ForEachEnabled([&](auto& /*provider*/, auto index) { indices.push_back(index); });
  return indices;
}

TEST(ProviderList, EachProviderHasItsColumnsInOrder) {
  EXPECT_EQ(Both::kCount, 2u);
  EXPECT_EQ(Both::kValueCount, 3u);
  EXPECT_EQ(Both::FirstColumn(0), 0u);
  EXPECT_EQ(Both::FirstColumn(1), 2u);
  EXPECT_EQ(Both::FirstColumn(2), 3u);
  EXPECT_EQ(Three::FirstColumn(1), 1u);
  EXPECT_EQ(Three::FirstColumn(2), 2u);
  EXPECT_EQ(Three::FirstColumn(3), 4u);
  constexpr auto kTypes = Three::AllValueTypes();
  EXPECT_THAT(kTypes, ElementsAre(ValueType{"wall", "nanoseconds"}, ValueType{"nothing", "count"},
                                  ValueType{"samples", "count"}, ValueType{"cpu", "nanoseconds"}));
}

static_assert(!EventProvider<CpuTimeProvider>);

// A provider's last value type has a cell; of an event, each.
TEST(ProviderList, CapturesWriteEachAmountOfAnEvent) {
  using List = ProviderList<CpuTimeProvider, Events, WallTimeProvider>;
  EXPECT_EQ(List::kCellCount, 4u);
  EXPECT_EQ(List::FirstCell(1), 1u);
  EXPECT_EQ(List::FirstCell(2), 3u);
  EXPECT_THAT(List::CellColumns(), ElementsAre(1, 2, 3, 4));
  EXPECT_EQ(List::RecordedValueTypes(), 0b11110);
  constexpr ValueLayout kLayout = List::Layout();
  EXPECT_THAT(std::vector(kLayout.sources.begin(), kLayout.sources.begin() + 5),
              ElementsAre(1, 1, 2, 3, 4));
  EXPECT_THAT(std::vector(kLayout.is_count.begin(), kLayout.is_count.begin() + 5),
              ElementsAre(true, false, false, false, false));
  EXPECT_EQ((List::IndexOf<Events>()), 1u);
  EXPECT_TRUE(List::kBringsEvents);
  EXPECT_FALSE(Both::kBringsEvents);
  EXPECT_EQ(Both::kCellCount, Both::kCount);
}

// Records have nothing of a WaitProvider, and yet it has a column and an account.
TEST(ProviderList, CapturesWriteNothingOfAWaitProvider) {
  using List = ProviderList<CpuTimeProvider, OffCpuTimeProvider, WallTimeProvider, Events>;
  EXPECT_EQ(List::kCellCount, 4u);
  EXPECT_THAT(List::CellColumns(), ElementsAre(1, 3, 4, 5));
  EXPECT_EQ(List::RecordedValueTypes(), 0b111010);
  EXPECT_EQ(List::kAccountCount, 5u);
  EXPECT_THAT(List::AccountColumns(), ElementsAre(1, 3, 4, 5, 2));
  EXPECT_EQ(List::FirstAccount(1), 4u);
  EXPECT_EQ(List::FirstAccount(2), 1u);
  constexpr ValueLayout kLayout = List::Layout();
  EXPECT_THAT(std::vector(kLayout.is_count.begin(), kLayout.is_count.begin() + 6),
              ElementsAre(true, false, false, false, false, false));
  EXPECT_THAT(std::vector(kLayout.sources.begin(), kLayout.sources.begin() + 6),
              ElementsAre(1, 1, 2, 3, 4, 5));
  EXPECT_TRUE(List::kFindsWaits);
  EXPECT_FALSE(Both::kFindsWaits);
  EXPECT_TRUE(Both::IsRated(0));
  EXPECT_TRUE(Both::IsRated(1));
  EXPECT_FALSE(Three::IsRated(1));
}

TEST(ProviderList, VisitsOnlyThoseThatTheOptionsEnable) {
  const auto both = [](SamplingOptions options) {
    return EnabledIndices(std::make_unique<Both>(options));
  };
  EXPECT_THAT(both({}), ElementsAre(0));
  EXPECT_THAT(both({.wall_frequency_hz = 10}), ElementsAre(0, 1));
  EXPECT_THAT(both({.cpu_frequency_hz = 0, .wall_frequency_hz = 10}), ElementsAre(1));
  EXPECT_THAT(both({.cpu_frequency_hz = 0}), ElementsAre());
}

TEST(ProviderList, ConstructsProvidersInPlaceFromTheOptions) {
  // A provider need not be movable: this one is not.
  ProviderList<testing::ArchetypeProvider> list{SamplingOptions{}};
  int visits = 0;
  list.ForEachEnabled([&](auto& /*provider*/, auto /*index*/) { ++visits; });
  EXPECT_EQ(visits, 1);
}

}  // namespace
}  // namespace strobe
