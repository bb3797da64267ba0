#include "strobe/worker/shared/shared_area.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "../open_area.h"
#include "support/in_child.h"

namespace strobe::internal {
namespace {

constexpr std::uint32_t kSlots = 64;
constexpr std::uint64_t kChunkBytes = 1 << 20;

absl::StatusOr<SharedArea> AdoptCopy(const SharedArea& area) {
  return SharedArea::Adopt(dup(area.descriptor()), kSlots, kChunkBytes);
}

std::vector<std::uint32_t> Changed(const SharedArea& area) {
  std::vector<std::uint32_t> threads;
  area.VisitChanged([&](std::uint32_t thread) { threads.push_back(thread); });
  return threads;
}

TEST(SharedArea, BothSidesSeeTheSameBytes) {
  const absl::StatusOr<SharedArea> area = testing::CreateOpenArea(3, kSlots, kChunkBytes);
  ASSERT_TRUE(area.ok()) << area.status();
  const absl::StatusOr<SharedArea> other = AdoptCopy(*area);
  ASSERT_TRUE(other.ok()) << other.status();
  EXPECT_NE(area->Chunk(0).data(), other->Chunk(0).data());
  area->Chunk(2).back() = std::byte{42};
  EXPECT_EQ(other->Chunk(2).back(), std::byte{42});
  area->At(130)->since_cpu_ns = 7;
  EXPECT_EQ(other->At(130)->since_cpu_ns, 7);
  EXPECT_TRUE(area->Chunk(3).empty());
  EXPECT_EQ(area->At(3 * kSlots), nullptr);
  other->Caches().memory.back() = std::byte{1};
  EXPECT_EQ(other->Caches().address_in_program,
            reinterpret_cast<Address>(area->Caches().memory.data()));
  EXPECT_EQ(area->Chunk(0).front(), std::byte{0});
}

// Of the memory mappings of this process that are the area's: their flags, a line each.
std::vector<std::string> FlagsOfArea() {
  std::ifstream file("/proc/self/smaps");
  std::vector<std::string> flags;
  bool is_area = false;
  for (std::string line; std::getline(file, line);) {
    if (line.find(" /memfd:strobe-channels") != std::string::npos) {
      is_area = true;
    } else if (is_area && line.starts_with("VmFlags:")) {
      flags.push_back(line);
      is_area = false;
    }
  }
  return flags;
}

TEST(SharedArea, NoCoreHasIt) {
  const absl::StatusOr<SharedArea> area = SharedArea::Create(2, kSlots, kChunkBytes);
  ASSERT_TRUE(area.ok() && area->OpenChunk(0));
  const absl::StatusOr<SharedArea> other = AdoptCopy(*area);
  ASSERT_TRUE(other.ok());
  EXPECT_FALSE(FlagsOfArea().empty());
  for (const std::string& flags : FlagsOfArea()) EXPECT_NE(flags.find(" dd"), flags.npos) << flags;
}

TEST(SharedArea, AChunkTakesNoMemoryBeforeItIsOpenedEvenOfAProgramThatLocksAll) {
  EXPECT_TRUE(testing::HoldsInChild([] {
    constexpr std::uint32_t kChunks = 256;
    rlimit limit{};
    getrlimit(RLIMIT_MEMLOCK, &limit);
    const bool may_lock = geteuid() == 0 || limit.rlim_cur == RLIM_INFINITY;
    if (!may_lock || mlockall(MCL_CURRENT | MCL_FUTURE) != 0) return true;
    const absl::StatusOr<SharedArea> area = SharedArea::Create(kChunks, kSlots, kChunkBytes);
    if (!area.ok() || !area->OpenChunk(3) || area->OpenChunk(kChunks)) return false;
    area->Chunk(3).back() = std::byte{1};
    area->At(3 * kSlots + kSlots - 1)->since_ns = 1;
    struct stat info {};
    return fstat(area->descriptor(), &info) == 0 &&
           static_cast<std::uint64_t>(info.st_blocks) * 512 < kChunks / 4 * kChunkBytes;
  }));
}

TEST(SharedArea, EachAnnouncedChannelIsVisitedOnce) {
  const absl::StatusOr<SharedArea> area = testing::CreateOpenArea(2, kSlots, kChunkBytes);
  const absl::StatusOr<SharedArea> other = AdoptCopy(*area);
  for (const std::uint32_t thread : {3U, 64U, 127U, 3U}) area->Announce(thread);
  EXPECT_THAT(Changed(*other), ::testing::ElementsAre(3U, 64U, 127U));
  EXPECT_TRUE(Changed(*other).empty());
}

TEST(SharedArea, AnAnnouncementEndsTheWait) {
  const absl::StatusOr<SharedArea> area = testing::CreateOpenArea(1, kSlots, kChunkBytes);
  const absl::StatusOr<SharedArea> other = AdoptCopy(*area);
  const std::uint32_t seen = other->header().changes.load();
  std::thread program([&] { area->Announce(5); });
  while (other->header().changes.load() == seen) other->AwaitChange(seen, 60'000'000'000);
  program.join();
  EXPECT_THAT(Changed(*other), ::testing::ElementsAre(5U));
}

TEST(SharedArea, AWorkerThatIsAskedGivesTheAreaBack) {
  const absl::StatusOr<SharedArea> area = testing::CreateOpenArea(1, kSlots, kChunkBytes);
  const absl::StatusOr<SharedArea> other = AdoptCopy(*area);
  area->GiveTo(1);
  EXPECT_TRUE(other->IsOf(1) && !other->IsWantedFrom(1));
  std::thread worker([&] {
    for (std::uint32_t seen = 0; !other->IsWantedFrom(1); seen = other->header().changes.load())
      other->AwaitChange(seen, 60'000'000'000);
    EXPECT_TRUE(other->IsOf(1));
    other->Announce(5);
    EXPECT_TRUE(other->GiveBack(1));
  });
  area->TakeBack(60'000'000'000);
  EXPECT_THAT(Changed(*area), ::testing::ElementsAre(5U));
  worker.join();
  area->GiveTo(2);
  EXPECT_TRUE(other->IsOf(2) && !other->IsWantedFrom(2));
  EXPECT_FALSE(other->IsOf(1));
}

// A stopped worker does not answer, and goes on at any time.
TEST(SharedArea, AWorkerThatComesLateTouchesNothing) {
  const absl::StatusOr<SharedArea> area = testing::CreateOpenArea(1, kSlots, kChunkBytes);
  const absl::StatusOr<SharedArea> other = AdoptCopy(*area);
  area->GiveTo(1);
  area->TakeBack(1);
  EXPECT_TRUE(other->IsWantedFrom(1));
  EXPECT_FALSE(other->GiveBack(1));
  area->GiveTo(2);
  EXPECT_FALSE(other->GiveBack(1));
  EXPECT_TRUE(area->IsOf(2));
  area->At(3)->since_cpu_ns = 7;
  area->Announce(3);
  other->Leave();
  EXPECT_EQ(other->At(3)->since_cpu_ns, 0);
  EXPECT_TRUE(Changed(*other).empty());
  other->Chunk(0).back() = std::byte{1};
  EXPECT_EQ(area->Chunk(0).back(), std::byte{0});
  EXPECT_EQ(area->At(3)->since_cpu_ns, 7);
  EXPECT_THAT(Changed(*area), ::testing::ElementsAre(3U));
}

// It is better served by a worker that does not believe it.
TEST(SharedArea, AProgramThatWritesAnywhereKeepsItsWorker) {
  const absl::StatusOr<SharedArea> area = testing::CreateOpenArea(1, kSlots, kChunkBytes);
  area->GiveTo(1);
  for (const std::uint64_t word : {std::uint64_t{0}, std::uint64_t{2}, ~std::uint64_t{0}}) {
    area->header().worker = area->header().lost_worker = word;
    EXPECT_TRUE(area->IsOf(1) && !area->IsWantedFrom(1)) << word;
    EXPECT_TRUE(area->GiveBack(1)) << word;
  }
}

TEST(SharedArea, WhatCouldShrinkOrIsOtherIsRefused) {
  const absl::StatusOr<SharedArea> area = testing::CreateOpenArea(1, kSlots, kChunkBytes);
  EXPECT_NE(ftruncate(area->descriptor(), 4096), 0) << "the area can shrink";
  EXPECT_FALSE(SharedArea::Adopt(dup(area->descriptor()), kSlots, 2 * kChunkBytes).ok());
  EXPECT_FALSE(SharedArea::Adopt(open("/dev/null", O_RDWR | O_CLOEXEC), kSlots, kChunkBytes).ok());
  const auto make = [](std::size_t bytes, bool is_sealed) {
    const int file = memfd_create("hostile", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    EXPECT_EQ(ftruncate(file, static_cast<off_t>(bytes)), 0);
    EXPECT_EQ(fcntl(file, F_ADD_SEALS, is_sealed ? F_SEAL_SHRINK : 0), 0);
    return file;
  };
  EXPECT_FALSE(SharedArea::Adopt(make(4 << 20, false), kSlots, kChunkBytes).ok());
  EXPECT_FALSE(SharedArea::Adopt(make(16, true), kSlots, kChunkBytes).ok());
  EXPECT_FALSE(SharedArea::Adopt(make(4 << 20, true), kSlots, kChunkBytes).ok()) << "only zeros";
  // A header that promises more than the file has.
  const int file = make(64 * 1024, true);
  SharedAreaHeader& header = area->header();
  header.chunks = SharedArea::kMaxChunks;
  ASSERT_EQ(pwrite(file, static_cast<const void*>(&header), 64, 0), 64);
  EXPECT_FALSE(SharedArea::Adopt(file, kSlots, kChunkBytes).ok());
}

}  // namespace
}  // namespace strobe::internal
