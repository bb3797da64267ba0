#include "strobe/allocations/allocation_sampling.h"

#include <malloc.h>

#include <array>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "integration/kept_profiles.h"
#include "strobe/testing/profile_check.h"

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
// How many standard deviations an estimate may be off: one run in 15,000 is, for each estimate.
constexpr double kSigmas = 4;

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
  STROBE_NOINLINE void name(std::size_t size) {         \
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
STROBE_NOINLINE void ByPosixMemalign(std::size_t size) {
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

// Checks an estimate of so many allocations of one size.
void ExpectNear(std::string_view name, double estimate, double truth, std::size_t size) {
  const double p = -std::expm1(-static_cast<double>(size) / kInterval);
  const double deviation = std::sqrt(truth * ((1 - p) / p + p / 4));
  EXPECT_NEAR(estimate, truth, kSigmas * deviation) << name;
}

// Allocates `count` blocks by each way, in a session of its own. The profiles that are kept then
// have these allocations.
void AllocateByEachWay(std::size_t size, int count) {
  AllocationProfiler profiler({.sampling = {.cpu_frequency_hz = 0},
                               .threads = {.ring_bytes = 1 << 20},
                               .exporter = {.period_s = 600}});
  ASSERT_EQ(profiler.Start(), absl::OkStatus());
  const AllocationSampling sampling(profiler, {.interval_bytes = kInterval});
  ASSERT_EQ(sampling.status(), absl::OkStatus());
  RunRegistered(profiler, "main", [&] {
    // Has the unwind tables built. Before, each sample takes a copy of the stack along, and a
    // sample that finds no room for it is added to the next one's stack.
    for (const Way& way : kWays) way.allocate(16 * kInterval);
    ASSERT_EQ(profiler.Flush(), absl::OkStatus());
    KeptProfiles::Take();
    for (const Way& way : kWays) {
      for (int i = 0; i < count; ++i) way.allocate(size);
    }
  });
  ASSERT_EQ(profiler.Stop(), absl::OkStatus());
}

TEST(AllocationSampling, FindsTheBytesOfEachFunction) {
  for (const std::size_t size : {64, 1000, 40'000}) {
    const int count = static_cast<int>(600 * kInterval / size);  // about 600 samples each
    AllocateByEachWay(size, count);
    const std::vector<KeptProfile> kept = KeptProfiles::Take();
    auto objects = SumByWay(kept, "alloc_objects");
    auto bytes = SumByWay(kept, "alloc_space");
    for (const Way& way : kWays) {
      ExpectNear(way.name, static_cast<double>(objects[way.name]), count, size);
      ExpectNear(way.name, static_cast<double>(bytes[way.name]) / static_cast<double>(size), count,
                 size);
    }
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
  void* const none = Used(::operator new(0));
  EXPECT_NE(none, nullptr);
  ::operator delete(none);
}

}  // namespace
}  // namespace strobe
