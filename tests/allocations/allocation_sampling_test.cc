#include "strobe/allocations/allocation_sampling.h"

#include <malloc.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <initializer_list>
#include <iostream>
#include <map>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <variant>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"
#include "integration/kept_profiles.h"
#include "strobe/testing/profile_check.h"
#include "support/chance.h"

namespace strobe {
namespace {

using testing::KeptProfile;
using testing::KeptProfiles;
using testing::RunRegistered;

struct KeepingAllocationTraits : testing::KeepingTraits {
  using Providers = ProviderList<CpuTimeProvider, AllocationProvider>;
};
using AllocationProfiler = BasicProfiler<KeepingAllocationTraits>;

constexpr std::int64_t kInterval = 32 << 10;
// A block of that size is left out with the probability e^-64: never.
constexpr std::int64_t kCertainlySampled = 64 * kInterval;

// Keeps the compiler from leaving out an allocation.
template <class T>
T* Used(T* block) {
  asm volatile("" : "+r"(block) : : "memory");
  return block;
}

// One way to allocate, and to free.
struct Way {
  std::string_view name;
  void (*allocate)(std::size_t size);
};
#define STROBE_TEST_WAY(name, allocate, free)           \
  [[gnu::noinline]] void name(std::size_t size) {       \
    auto* const block = Used(allocate);                 \
    std::memset(static_cast<void*>(block), 0x5A, size); \
    free;                                               \
    asm volatile("" ::: "memory");                      \
  }
constexpr std::align_val_t kAlignment{128};
STROBE_TEST_WAY(ByMalloc, std::malloc(size), std::free(block))
STROBE_TEST_WAY(ByCalloc, std::calloc(size / 8, 8), std::free(block))
STROBE_TEST_WAY(ByRealloc, std::realloc(nullptr, size), std::free(block))
STROBE_TEST_WAY(ByReallocarray, reallocarray(nullptr, size / 8, 8), std::free(block))
STROBE_TEST_WAY(ByAlignedAlloc, std::aligned_alloc(64, size), std::free(block))
STROBE_TEST_WAY(ByMemalign, memalign(64, size), std::free(block))
STROBE_TEST_WAY(ByValloc, valloc(size), std::free(block))
STROBE_TEST_WAY(ByNew, ::operator new(size), ::operator delete(block))
STROBE_TEST_WAY(ByNewSized, ::operator new(size), ::operator delete(block, size))
STROBE_TEST_WAY(ByNewArray, new char[size], delete[] block)
STROBE_TEST_WAY(ByNewNothrow, ::operator new(size, std::nothrow),
                ::operator delete(block, std::nothrow))
STROBE_TEST_WAY(ByNewAligned, ::operator new(size, kAlignment),
                ::operator delete(block, kAlignment))
STROBE_TEST_WAY(ByNewAlignedSized, ::operator new(size, kAlignment),
                ::operator delete(block, size, kAlignment))
STROBE_TEST_WAY(ByNewAlignedNothrow, ::operator new(size, kAlignment, std::nothrow),
                ::operator delete(block, kAlignment, std::nothrow))
[[gnu::noinline]] void ByPosixMemalign(std::size_t size) {
  void* block = nullptr;
  ASSERT_EQ(posix_memalign(&block, 64, size), 0);
  std::free(Used(block));
  asm volatile("" ::: "memory");
}
constexpr std::array<Way, 15> kWays{{{"malloc", ByMalloc},
                                     {"calloc", ByCalloc},
                                     {"realloc", ByRealloc},
                                     {"reallocarray", ByReallocarray},
                                     {"aligned_alloc", ByAlignedAlloc},
                                     {"memalign", ByMemalign},
                                     {"valloc", ByValloc},
                                     {"posix_memalign", ByPosixMemalign},
                                     {"new", ByNew},
                                     {"new, delete with a size", ByNewSized},
                                     {"new[]", ByNewArray},
                                     {"new (nothrow)", ByNewNothrow},
                                     {"new (aligned)", ByNewAligned},
                                     {"new (aligned), delete with a size", ByNewAlignedSized},
                                     {"new (aligned, nothrow)", ByNewAlignedNothrow}}};

// The way that has allocated at the sample's leaf, or none.
const Way* WayAt(Address address) {
  const Way* nearest = nullptr;
  Address distance = 1024;
  for (const Way& way : kWays) {
    const Address from_way = address - reinterpret_cast<Address>(way.allocate);
    if (from_way >= distance) continue;
    distance = from_way;
    nearest = &way;
  }
  return nearest;
}

// The column's sums by the way at the stack's leaf.
std::map<std::string_view, std::int64_t> SumByWay(const std::vector<KeptProfile>& kept,
                                                  std::string_view type) {
  std::map<std::string_view, std::int64_t> sums;
  for (const KeptProfile& one : kept) {
    EXPECT_EQ(testing::CheckProfile(one.profile), "");
    const auto column = static_cast<std::size_t>(testing::ColumnOf(one.profile, type));
    for (std::size_t i = 0; i < one.profile.samples.size(); ++i) {
      const std::vector<Frame> frames = testing::FramesOf(one.profile, one.profile.samples[i]);
      if (frames.empty()) continue;
      if (const Way* const way = WayAt(frames.front().address))
        sums[way->name] += one.profile.Values(i)[column];
    }
  }
  return sums;
}

// What samples of allocations stand for.
struct Estimate {
  std::int64_t objects = 0;
  std::int64_t bytes = 0;
};

// Checks an estimate of `count` allocations of one size. How many of them are samples is decided by
// the allocating thread's random numbers alone, whose seed is the time of its first sample.
void ExpectNear(std::string_view name, const Estimate& estimate, std::int64_t count,
                std::size_t size) {
  const auto bytes = static_cast<double>(size);
  const double blocks_of_a_sample = -1 / std::expm1(-bytes / kInterval);
  const std::int64_t bytes_of_a_sample = std::llround(bytes * blocks_of_a_sample);
  EXPECT_EQ(estimate.bytes % bytes_of_a_sample, 0) << name;
  const std::int64_t samples = estimate.bytes / bytes_of_a_sample;
  testing::ExpectWithinChance(static_cast<double>(samples),
                              testing::BinomialBounds(count, 1 / blocks_of_a_sample),
                              absl::StrCat("samples of ", count, " blocks: ", std::string(name)));
  // The blocks that a sample stands for are rounded at random.
  ASSERT_GT(samples, 0);
  testing::ExpectWithinChance(
      static_cast<double>(estimate.objects) / static_cast<double>(samples),
      testing::BoundedMeanBounds(samples, blocks_of_a_sample, std::floor(blocks_of_a_sample),
                                 std::ceil(blocks_of_a_sample)),
      absl::StrCat("blocks of a sample: ", std::string(name)));
}

// Without samples of CPU time, in rings with room for a burst, in periods that a test ends.
ProfilerOptions AllocationsAlone() {
  return {.sampling = {.cpu_frequency_hz = 0},
          .threads = {.ring_bytes = 1 << 22},
          .exporter = {.period_s = 600}};
}

// Allocates `count` blocks by each way, in a session of its own. The profiles that are kept then
// have these allocations.
void AllocateByEachWay(std::size_t size, int count, bool is_registered = true) {
  AllocationProfiler profiler(AllocationsAlone());
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  const AllocationSampling sampling(profiler, {.interval_bytes = kInterval});
  ASSERT_EQ(sampling.status(), absl::OkStatus());
  const auto body = [&] {
    // Has the unwind tables built. Before, each sample takes a copy of the stack along, and a
    // sample that finds no room for it is added to the next one's stack.
    for (int i = 0; i < 2; ++i) {
      for (const Way& way : kWays) way.allocate(kCertainlySampled);
      ASSERT_EQ(profiler.Flush(), absl::OkStatus());
    }
    KeptProfiles::Take();
    for (const Way& way : kWays) {
      for (int i = 0; i < count; ++i) way.allocate(size);
    }
  };
  is_registered ? static_cast<void>(RunRegistered(profiler, "main", body)) : body();
  ASSERT_EQ(profiler.Stop(), absl::OkStatus());
}

void ExpectBytesOfEachFunction(std::size_t size, bool is_registered) {
  const int count = static_cast<int>(600 * kInterval / size);  // about 600 samples each
  AllocateByEachWay(size, count, is_registered);
  const std::vector<KeptProfile> kept = KeptProfiles::Take();
  auto objects = SumByWay(kept, "alloc_objects");
  auto bytes = SumByWay(kept, "alloc_space");
  for (const Way& way : kWays) {
    ExpectNear(way.name, {.objects = objects[way.name], .bytes = bytes[way.name]}, count, size);
  }
}

TEST(AllocationSampling, FindsTheBytesOfEachFunction) {
  for (const std::size_t size : {64, 1000, 40'000}) ExpectBytesOfEachFunction(size, true);
}
TEST(AllocationSampling, FindsTheBytesOfThreadsThatAreNotRegistered) {
  ExpectBytesOfEachFunction(1000, false);
}

// Threads that are not registered share rings. A sample that lacks a table stays with its own
// stack: added to the next one's, it would be another thread's.
TEST(AllocationSampling, BytesOfThreadsThatAreNotRegisteredStayApartWithoutTables) {
  KeptProfiles::Take();
  AllocationProfiler profiler(AllocationsAlone());
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  const AllocationSampling sampling(profiler, {.interval_bytes = kInterval});
  for (const Way& way : kWays) {
    std::thread([&way] { way.allocate(kCertainlySampled); }).join();
  }
  ASSERT_EQ(profiler.Stop(), absl::OkStatus());
  auto bytes = SumByWay(KeptProfiles::Take(), "alloc_space");
  for (const Way& way : kWays) EXPECT_EQ(bytes[way.name], kCertainlySampled) << way.name;
}

// Called by pointers that the compiler does not know, so that it makes no copy of the functions.
[[gnu::noinline]] void* GrowBlock(void* block, std::size_t size) {
  void* const grown = Used(std::realloc(block, size));
  asm volatile("" ::: "memory");
  return grown;
}
[[gnu::noinline]] void* MakeBlock(std::size_t size) {
  void* const block = Used(std::malloc(size));
  asm volatile("" ::: "memory");
  return block;
}
void* (*volatile Grow)(void*, std::size_t) = GrowBlock;
void* (*volatile Make)(std::size_t) = MakeBlock;

// Has the unwind tables built. Before, each sample takes a copy of the stack along, and the stack
// of a live block lacks the frames that the collector finds later.
void WarmUp(AllocationProfiler& profiler) {
  for (int i = 0; i < 16; ++i) {
    std::free(Make(kCertainlySampled));
    std::free(Grow(nullptr, kCertainlySampled));
  }
  ASSERT_EQ(profiler.Flush(), absl::OkStatus());
  KeptProfiles::Take();
}

// What is live by the last profile: in rows of "[live]", with a leaf in [begin, begin + 1024) of
// one of `begins`. Rows whose stack is not known count, too, so that a sum of 0 hides nothing.
std::int64_t LiveSum(const Profile& profile, std::string_view type,
                     std::initializer_list<const void*> begins) {
  const auto column = static_cast<std::size_t>(testing::ColumnOf(profile, type));
  std::int64_t sum = 0;
  for (std::size_t i = 0; i < profile.samples.size(); ++i) {
    const std::int64_t value = profile.Values(i)[column];
    if (value == 0) continue;
    EXPECT_EQ(profile.Labels(i).Text(kThreadNameLabel), "[live]");
    const std::vector<Frame> frames = testing::FramesOf(profile, profile.samples[i]);
    const bool is_there = std::ranges::any_of(begins, [&](const void* begin) {
      return frames.front().address - reinterpret_cast<Address>(begin) < 1024;
    });
    if (frames.front().module == Frame::kPseudo || is_there) sum += value;
  }
  return sum;
}
const void* BeginOf(void* (*function)(std::size_t)) {
  return reinterpret_cast<const void*>(function);
}
Estimate LiveOf(const Profile& profile, const void* begin) {
  return {.objects = LiveSum(profile, "inuse_objects", {begin}),
          .bytes = LiveSum(profile, "inuse_space", {begin})};
}

TEST(AllocationSampling, ShowsWhatIsLiveAtTheEndOfEachProfile) {
  KeptProfiles::Take();
  constexpr std::size_t kSize = 1000;
  constexpr int kBlocks = 40'000;
  AllocationProfiler profiler(AllocationsAlone());
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  const AllocationSampling sampling(profiler, {.interval_bytes = kInterval});
  const auto registration = profiler.RegisterThread("main");
  const void* const make = BeginOf(MakeBlock);
  WarmUp(profiler);
  std::vector<void*> blocks;
  blocks.reserve(kBlocks);
  for (int i = 0; i < kBlocks; ++i) blocks.push_back(Make(kSize));
  for (int i = 0; i < 2; ++i) {  // a level, not a flow: it is in each period
    ASSERT_EQ(profiler.Flush(), absl::OkStatus());
    const Profile profile = KeptProfiles::Take().back().profile;
    EXPECT_EQ(testing::CheckProfile(profile), "");
    ExpectNear("live", LiveOf(profile, make), kBlocks, kSize);
  }
  const absl::StatusOr<Profile> recorded = profiler.Record(std::chrono::milliseconds(1));
  ASSERT_EQ(recorded.status(), absl::OkStatus());
  ExpectNear("recorded", LiveOf(*recorded, make), kBlocks, kSize);
  // Another thread frees half of them, without a trace in what has been allocated.
  std::thread([&] {
    for (int i = 0; i < kBlocks / 2; ++i) std::free(blocks[i]);
  }).join();
  ASSERT_EQ(profiler.Flush(), absl::OkStatus());
  Profile profile = KeptProfiles::Take().back().profile;
  ExpectNear("half", LiveOf(profile, make), kBlocks / 2, kSize);
  // To grow a block is to free it, and to allocate another one.
  for (int i = kBlocks / 2; i < kBlocks; ++i) blocks[i] = Grow(blocks[i], 2 * kSize);
  ASSERT_EQ(profiler.Flush(), absl::OkStatus());
  profile = KeptProfiles::Take().back().profile;
  EXPECT_EQ(LiveSum(profile, "inuse_objects", {make}), 0);
  ExpectNear("grown", LiveOf(profile, reinterpret_cast<const void*>(&GrowBlock)), kBlocks / 2,
             2 * kSize);
  for (int i = kBlocks / 2; i < kBlocks; ++i) std::free(blocks[i]);
  ASSERT_EQ(profiler.Flush(), absl::OkStatus());
  profile = KeptProfiles::Take().back().profile;
  EXPECT_EQ(LiveSum(profile, "inuse_objects", {reinterpret_cast<const void*>(&GrowBlock)}), 0);
}

// With each allocation sampled, sums are exact.
TEST(AllocationSampling, ShowsWhatWasLiveAtThePeakAndHowOldBlocksAre) {
  KeptProfiles::Take();
  AllocationProfiler profiler(AllocationsAlone());
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  const AllocationSampling sampling(profiler, {.interval_bytes = 1});
  const auto registration = profiler.RegisterThread("main");
  const void* const make = BeginOf(MakeBlock);
  WarmUp(profiler);
  constexpr std::size_t kSize = 1 << 20;  // what the test itself allocates is less in all
  constexpr std::size_t kBlocks = 50;
  std::vector<void*> blocks;
  for (std::size_t i = 0; i < kBlocks; ++i) blocks.push_back(Make(kSize));
  std::free(blocks.back());
  blocks.pop_back();
  void* const later = Make(kSize / 2);
  for (void* const block : blocks) std::free(block);
  for (int i = 0; i < 2; ++i) {  // since the sampling began, in each period
    ASSERT_EQ(profiler.Flush(), absl::OkStatus());
    const Profile profile = KeptProfiles::Take().back().profile;
    EXPECT_EQ(testing::CheckProfile(profile), "");
    EXPECT_EQ(LiveSum(profile, "peak_space", {make}), kBlocks * kSize);
    EXPECT_EQ(LiveSum(profile, "peak_objects", {make}), kBlocks);
    EXPECT_EQ(LiveSum(profile, "inuse_space", {make}), kSize / 2) << "the later one";
    const auto live = static_cast<std::size_t>(testing::ColumnOf(profile, "inuse_space"));
    const auto peak = static_cast<std::size_t>(testing::ColumnOf(profile, "peak_space"));
    for (std::size_t row = 0; row < profile.samples.size(); ++row) {
      const Label* const age = profile.Labels(row).Find("age_s");
      if (profile.Values(row)[live] > 0) {
        ASSERT_NE(age, nullptr);
        EXPECT_LE(std::get<std::int64_t>(age->value), 3600);
      } else if (profile.Values(row)[peak] > 0) {
        EXPECT_EQ(age, nullptr) << "it is freed";
      }
    }
  }
  std::free(later);
}

// No table is built when it is allocated: the collector finishes its stack.
TEST(AllocationSampling, TheFirstBlockHasItsStack) {
  for (const bool is_registered : {true, false}) {
    KeptProfiles::Take();
    AllocationProfiler profiler(
        {.sampling = {.cpu_frequency_hz = 0}, .exporter = {.period_s = 600}});
    ASSERT_EQ(profiler.Start(), absl::OkStatus());
    const AllocationSampling sampling(profiler, {.interval_bytes = kInterval});
    std::optional<Registration> registration;
    if (is_registered) registration.emplace(profiler.RegisterThread("main"));
    void* const block = Make(kCertainlySampled);
    for (int i = 0; i < 3; ++i) {  // it stays known
      ASSERT_EQ(profiler.Flush(), absl::OkStatus());
      const Profile profile = KeptProfiles::Take().back().profile;
      const auto column = static_cast<std::size_t>(testing::ColumnOf(profile, "inuse_space"));
      std::int64_t bytes = 0;
      for (std::size_t row = 0; row < profile.samples.size(); ++row) {
        const Frame leaf = testing::FramesOf(profile, profile.samples[row]).front();
        const Address from_begin = leaf.address - reinterpret_cast<Address>(BeginOf(MakeBlock));
        if (from_begin < 1024) bytes += profile.Values(row)[column];
      }
      EXPECT_EQ(bytes, kCertainlySampled) << is_registered;
    }
    std::free(block);
  }
}

// Every free of a sampled block is seen, whatever function frees it.
TEST(AllocationSampling, SeesTheFreesOfEachFunction) {
  AllocateByEachWay(1000, 20'000);
  const Profile profile = KeptProfiles::Take().back().profile;
  for (const Way& way : kWays)
    EXPECT_EQ(LiveSum(profile, "inuse_objects", {reinterpret_cast<const void*>(way.allocate)}), 0)
        << way.name;
}

TEST(AllocationSampling, KeepsABlockThatCannotGrow) {
  KeptProfiles::Take();
  constexpr std::int64_t kSize = kCertainlySampled;
  AllocationProfiler profiler(
      {.sampling = {.cpu_frequency_hz = 0}, .threads = {.ring_bytes = 1 << 22}});
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  const AllocationSampling sampling(profiler, {.interval_bytes = kInterval});
  const auto registration = profiler.RegisterThread("main");
  WarmUp(profiler);
  void* const block = Make(kSize);
  EXPECT_EQ(Grow(block, std::size_t{1} << 62), nullptr);
  ASSERT_EQ(profiler.Flush(), absl::OkStatus());
  EXPECT_EQ(LiveSum(KeptProfiles::Take().back().profile, "inuse_space", {BeginOf(MakeBlock)}),
            kSize);
  std::free(block);
}

// A sampled block is the allocator's own: as large, as aligned and as empty as without Strobe.
TEST(AllocationSampling, ChangesNoBlock) {
  AllocationProfiler profiler({.sampling = {.cpu_frequency_hz = 0}});
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  const AllocationSampling sampling(profiler, {.interval_bytes = 1});
  const auto registration = profiler.RegisterThread("main");
  for (const std::size_t size : {1, 24, 1000, 100'000, 3'000'000}) {
    auto* block = Used(static_cast<unsigned char*>(std::calloc(size, 1)));
    EXPECT_EQ(std::count(block, block + size, 0), static_cast<std::ptrdiff_t>(size));
    const std::size_t usable = malloc_usable_size(block);
    ASSERT_GE(usable, size);
    std::memset(block, 0x5A, usable);  // the program may use all of it
    block = Used(static_cast<unsigned char*>(std::realloc(block, 2 * usable)));
    EXPECT_EQ(std::count(block, block + usable, 0x5A), static_cast<std::ptrdiff_t>(usable));
    ASSERT_GE(malloc_usable_size(block), 2 * usable);
    std::free(block);
    for (const std::size_t alignment : {16, 256, 8192}) {
      // mimalloc 2.0 aligns a block of 256 bytes at 256 to 128 only.
      const std::size_t bytes = alignment * (size / alignment + 23);
      void* const aligned = Used(std::aligned_alloc(alignment, bytes));
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(aligned) % alignment, 0U);
      EXPECT_GE(malloc_usable_size(aligned), bytes);
      std::free(aligned);
    }
  }
}

TEST(AllocationSampling, LeavesOutWhatIsLiveByOption) {
  KeptProfiles::Take();
  AllocationProfiler profiler({.sampling = {.cpu_frequency_hz = 0}});
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  const AllocationSampling sampling(profiler, {.interval_bytes = 1, .live_heap = false});
  const auto registration = profiler.RegisterThread("main");
  WarmUp(profiler);
  void* const block = Make(1000);
  ASSERT_EQ(profiler.Flush(), absl::OkStatus());
  EXPECT_EQ(LiveSum(KeptProfiles::Take().back().profile, "inuse_space", {BeginOf(MakeBlock)}), 0);
  std::free(block);
}

TEST(AllocationSampling, CountsWhatIsAllocatedWhileNoSessionRuns) {
  AllocationProfiler profiler({.sampling = {.cpu_frequency_hz = 0}});
  const AllocationSampling sampling(profiler, {.interval_bytes = kInterval});
  constexpr int kBlocks = 100'000;
  constexpr int kSize = 1000;
  std::free(Make(kCertainlySampled));  // the point before was drawn with another test's interval
  const AllocationStats before = AllocationSampling::stats();
  for (int i = 0; i < kBlocks; ++i) std::free(Make(kSize));
  const AllocationStats after = AllocationSampling::stats();
  ExpectNear("untaken",
             {.objects = after.untaken_objects - before.untaken_objects,
              .bytes = after.untaken_bytes - before.untaken_bytes},
             kBlocks, kSize);
}

// Eight threads allocate, free and grow each other's blocks.
TEST(AllocationSampling, KnowsWhatIsLiveAfterAStorm) {
  KeptProfiles::Take();
  const char* const asked = std::getenv("STROBE_TEST_OPERATIONS");
  const std::int64_t operations = asked != nullptr ? std::atoll(asked) : 10'000'000;
  constexpr int kThreads = 8;
  constexpr std::size_t kPlaces = 32'768;
  AllocationProfiler profiler(AllocationsAlone());
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  const AllocationSampling sampling(profiler, {.interval_bytes = kInterval});
  RunRegistered(profiler, "main", [&] { WarmUp(profiler); });
  std::vector<std::atomic<std::size_t*>> places(kPlaces);
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&, thread] {
      RunRegistered(profiler, "t", [&] {
        RandomSource random(static_cast<std::uint64_t>(thread));
        for (std::int64_t i = 0; i < operations / kThreads; ++i) {
          const auto size = static_cast<std::size_t>(16 + random.Uniform() * 2000);
          auto& place = places[static_cast<std::size_t>(random.Uniform() * kPlaces)];
          auto* block = place.exchange(nullptr);  // of any thread
          if (i % 4 == 0) {
            block = static_cast<std::size_t*>(Grow(block, size));
          } else {
            std::free(block);
            block = static_cast<std::size_t*>(Make(size));
          }
          *block = size;
          std::free(place.exchange(block));
        }
      });
    });
  }
  for (std::thread& thread : threads) thread.join();
  double truth = 0;
  double variance = 0;
  double furthest = 0;  // that what a block counts for is from its size
  for (const auto& place : places) {
    if (place.load() == nullptr) continue;
    const auto size = static_cast<double>(*place.load());
    const double p = -std::expm1(-size / kInterval);
    truth += size;
    variance += size * size * (1 - p) / p;
    furthest = std::max(furthest, size * std::max(1.0, (1 - p) / p));
  }
  const auto live_bytes = [&] {
    EXPECT_EQ(profiler.Flush(), absl::OkStatus());
    return LiveSum(KeptProfiles::Take().back().profile, "inuse_space",
                   {reinterpret_cast<const void*>(&GrowBlock), BeginOf(MakeBlock)});
  };
  const auto estimate = static_cast<double>(live_bytes());
  testing::ExpectWithinChance(estimate, testing::SumBounds(truth, variance, furthest),
                              "live bytes after a storm");
  for (auto& place : places) std::free(place.exchange(nullptr));
  EXPECT_EQ(live_bytes(), 0) << "frees were missed";
  std::cout << operations << " operations: " << estimate << " B live, in truth " << truth << " B\n";
  EXPECT_EQ(AllocationSampling::stats().blocks_refused, 0U);
}

// Whether malloc is seen is no matter of the distance between samples.
TEST(AllocationSampling, BeginsWhereEachByteIsASample) {
  AllocationProfiler profiler;
  for (int i = 0; i < 1000; ++i) {
    const AllocationSampling sampling(profiler, {.interval_bytes = 1});
    ASSERT_EQ(sampling.status(), absl::OkStatus()) << i;
    std::free(Make(100));
  }
}

TEST(AllocationSampling, IsOneAtATime) {
  AllocationProfiler profiler;
  const AllocationSampling sampling(profiler);
  EXPECT_EQ(sampling.status(), absl::OkStatus());
  {
    const AllocationSampling other(profiler);
    EXPECT_EQ(other.status().code(), absl::StatusCode::kFailedPrecondition);
  }
  const AllocationSampling third(profiler);
  EXPECT_EQ(third.status().code(), absl::StatusCode::kFailedPrecondition)
      << "the end of one that does nothing ends nothing";
  for (const std::int64_t interval : {std::int64_t{0}, std::int64_t{-1}, INT64_MAX}) {
    const AllocationSampling wrong(profiler, {.interval_bytes = interval});
    EXPECT_EQ(wrong.status().code(), absl::StatusCode::kInvalidArgument);
  }
}

// The allocation that fails leaves what the standards say.
TEST(AllocationSampling, KeepsThePromisesOfTheFunctions) {
  constexpr std::size_t kTooMuch = std::size_t{1} << 62;
  volatile std::size_t too_much = kTooMuch;
  errno = 0;
  EXPECT_EQ(Used(std::malloc(too_much)), nullptr);
  EXPECT_EQ(errno, ENOMEM);
  EXPECT_EQ(Used(std::calloc(too_much, 8)), nullptr);
  EXPECT_EQ(Used(reallocarray(nullptr, too_much, 8)), nullptr);
  EXPECT_THROW(Used(::operator new(too_much)), std::bad_alloc);
  EXPECT_THROW(Used(::operator new(too_much, kAlignment)), std::bad_alloc);
  EXPECT_EQ(Used(::operator new(too_much, std::nothrow)), nullptr);
  EXPECT_EQ(Used(::operator new(too_much, kAlignment, std::nothrow)), nullptr);
  void* block = nullptr;
  EXPECT_EQ(posix_memalign(&block, 3, 8), EINVAL);
  EXPECT_EQ(posix_memalign(&block, 64, too_much), ENOMEM);
  static int handler_calls;
  handler_calls = 0;
  std::set_new_handler([] {
    if (++handler_calls == 3) std::set_new_handler(nullptr);
  });
  EXPECT_EQ(Used(::operator new(too_much, std::nothrow)), nullptr);
  EXPECT_EQ(handler_calls, 3);
  for (const std::size_t alignment : {8, 64, 4096}) {
    ASSERT_EQ(posix_memalign(&block, alignment, 100), 0);
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0U);
    EXPECT_GE(malloc_usable_size(block), 100U);
    std::free(block);
  }
  EXPECT_EQ(malloc_usable_size(nullptr), 0U);
  void* const none = Used(::operator new(0));
  EXPECT_NE(none, nullptr);
  ::operator delete(none);
}

}  // namespace
}  // namespace strobe
