#include "strobe/worker/shared/table_store.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "strobe/platform/native.h"
#include "strobe/worker/shared/shared_tables.h"

namespace strobe::internal {
namespace {

constexpr std::uint32_t kModuleBytes = 1 << 18;

Module ModuleOf(std::string build_id) {
  return {.start = 0x400000,
          .limit = 0x400000 + kModuleBytes,
          .path = "/lib/x.so",
          .build_id = std::move(build_id)};
}

class Store : public ::testing::Test {
 protected:
  void Make(std::size_t max_table_bytes = TableStore::kMaxTableBytes) {
    absl::StatusOr<std::shared_ptr<TableStore>> store = TableStore::Create(max_table_bytes);
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
  }
  TableStore::Table Share(const Module& module, std::size_t chunk = 0, bool is_whole = true) {
    return store_->Share(module, chunk, [&] {
      ++built_;
      return CfiModules::BuiltTable{
          .table = std::make_shared<const UnwindTable>(
              kModuleBytes, std::vector<UnwindRow>{{0, UnwindRule::Stop(), {}}},
              std::vector<SpecialRule>()),
          .is_whole = is_whole};
    });
  }

  std::shared_ptr<TableStore> store_;
  std::atomic<int> built_{0};
};

TEST_F(Store, ATableIsBuiltOnceForAllPrograms) {
  Make();
  const Module module = ModuleOf("1");
  Module elsewhere = module;  // in another program
  elsewhere.start += 0x10000;
  elsewhere.limit += 0x10000;
  elsewhere.load_bias += 0x10000;
  std::vector<TableStore::Table> tables(8);
  std::vector<std::thread> programs;
  for (std::size_t i = 0; i < tables.size(); ++i)
    programs.emplace_back([&, i] { tables[i] = Share(i % 2 == 0 ? module : elsewhere); });
  for (std::thread& program : programs) program.join();
  EXPECT_EQ(built_, 1);
  for (const TableStore::Table& table : tables) EXPECT_EQ(table, tables[0]);
  EXPECT_TRUE(store_->OffsetOf(*tables[0]).has_value());
  EXPECT_EQ(tables[0]->Find(100), UnwindRule::Stop());
  const TableStoreStats stats = store_->stats();
  EXPECT_EQ(stats.tables, 1U);
  EXPECT_EQ(stats.found, tables.size() - 1);
  EXPECT_EQ(stats.bytes, tables[0]->memory_bytes());
}

TEST_F(Store, AnotherImageOrPartHasAnotherTable) {
  Make();
  Module changed = ModuleOf("");  // known by its file
  changed.file_version = 1;
  std::vector<TableStore::Table> tables{Share(ModuleOf("1")), Share(ModuleOf("2")),
                                        Share(ModuleOf("1"), 1), Share(changed)};
  changed.file_version = 2;  // the file has changed under its name
  tables.push_back(Share(changed));
  Module longer = ModuleOf("1");
  longer.limit += 4096;
  tables.push_back(Share(longer));
  EXPECT_EQ(built_, static_cast<int>(tables.size()));
  for (std::size_t i = 0; i < tables.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(tables[i], tables[j]) << i << " " << j;
  }
}

TEST_F(Store, WhatHasNoKeyOrIsNotWholeIsNotKept) {
  Make();
  const TableStore::Table without_key = Share(ModuleOf(""));
  EXPECT_FALSE(store_->OffsetOf(*without_key).has_value());
  const TableStore::Table cut_short = Share(ModuleOf("1"), 0, /*is_whole=*/false);
  EXPECT_FALSE(store_->OffsetOf(*cut_short).has_value());
  EXPECT_TRUE(store_->OffsetOf(*Share(ModuleOf("1"))).has_value()) << "the next one is whole";
  EXPECT_EQ(store_->stats().tables, 1U);
}

TEST_F(Store, UnusedTablesMakeRoomThoseUsedLeastRecentlyFirst) {
  Make();
  const std::size_t bytes = Share(ModuleOf("0"))->memory_bytes();
  Make(3 * bytes);
  const TableStore::Table used = Share(ModuleOf("1"));
  static_cast<void>(Share(ModuleOf("2")));
  static_cast<void>(Share(ModuleOf("3")));
  static_cast<void>(Share(ModuleOf("2")));  // so the third is the oldest that is unused
  built_ = 0;
  static_cast<void>(Share(ModuleOf("4")));
  EXPECT_EQ(store_->stats().evicted, 1U);
  EXPECT_EQ(store_->stats().bytes, 3 * bytes);
  static_cast<void>(Share(ModuleOf("1")));
  static_cast<void>(Share(ModuleOf("2")));
  EXPECT_EQ(built_, 1) << "the fourth alone";
  static_cast<void>(Share(ModuleOf("3")));
  EXPECT_EQ(built_, 2) << "the third had made room";
}

TEST_F(Store, TablesInUseAreNotEvicted) {
  Make();
  const std::size_t bytes = Share(ModuleOf("0"))->memory_bytes();
  Make(2 * bytes);
  const std::vector<TableStore::Table> used{Share(ModuleOf("1")), Share(ModuleOf("2"))};
  const TableStore::Table beyond = Share(ModuleOf("3"));
  EXPECT_FALSE(store_->OffsetOf(*beyond).has_value()) << "the caller's alone";
  EXPECT_EQ(beyond->Find(100), UnwindRule::Stop());
  EXPECT_EQ(store_->stats().unshared, 1U);
  EXPECT_EQ(store_->stats().evicted, 0U);
}

// The libraries of this program, whole, for a hundred programs that have mapped them. One thread
// builds all, and counts tables and bytes; the times are printed only, so nothing here is chance.
TEST_F(Store, AHundredProgramsTakeTheMemoryAndTheTablesOfOne) {
  Make();
  const auto cpu_ns = [] {
    return NativePlatform::ThreadCpuTimeNs(NativePlatform::CurrentThreadId());
  };
  const ModuleMap map(NativePlatform::Modules());
  std::vector<std::unique_ptr<CfiModules>> programs;
  std::vector<std::int64_t> attach_ns;
  std::vector<std::size_t> bytes;
  std::vector<int> builds;  // of tables, so far
  built_ = 0;
  for (int i = 0; i < 100; ++i) {
    const std::int64_t begin_ns = cpu_ns();
    programs.push_back(std::make_unique<CfiModules>(
        kNativeArchitecture, &NativePlatform::ReadMemory, nullptr,
        [this](const Module& module, std::size_t chunk, const CfiModules::BuildTable& build) {
          return store_->Share(module, chunk, [&] {
            ++built_;
            return build();
          });
        }));
    programs.back()->Update(map);
    programs.back()->BuildAll();
    attach_ns.push_back(cpu_ns() - begin_ns);
    bytes.push_back(store_->stats().bytes);
    builds.push_back(built_);
  }
  std::printf(
      "%zu modules: %zu bytes and %d tables of one; %.2f ms of CPU time the first, %.2f ms the "
      "last\n",
      map.modules().size(), bytes.front(), builds.front(),
      static_cast<double>(attach_ns.front()) / 1e6, static_cast<double>(attach_ns.back()) / 1e6);
  EXPECT_GT(bytes.front(), 100'000U);
  EXPECT_EQ(bytes.back(), bytes.front());
  EXPECT_GT(builds.front(), 0);
  EXPECT_EQ(builds.back(), builds.front()) << "the others build none";
}

// Images come and go for as long as the worker lives: the memory is that of the limit.
TEST_F(Store, RoomComesBack) {
  Make();
  const std::size_t bytes = Share(ModuleOf("0"))->memory_bytes();
  Make(4 * bytes);
  std::size_t highest = 0;
  for (int i = 0; i < 20'000; ++i) {
    const TableStore::Table table = Share(ModuleOf(std::to_string(i)));
    const std::optional<std::size_t> offset = store_->OffsetOf(*table);
    ASSERT_TRUE(offset.has_value()) << i;
    highest = std::max(highest, *offset);
  }
  EXPECT_LT(highest, std::size_t{2} << 20);
  EXPECT_LE(store_->stats().bytes, 4 * bytes);
}

TEST_F(Store, ProgramsCanReadAndNotWrite) {
  Make();
  const int programs = dup(store_->descriptor());
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, programs, 0), MAP_FAILED);
  EXPECT_NE(ftruncate(programs, 0), 0);
  const absl::StatusOr<TableMemory> seen = TableMemory::Adopt(programs, TableStore::kMemoryBytes);
  ASSERT_TRUE(seen.ok()) << seen.status();
  EXPECT_EQ(seen->bytes().size(), TableStore::kMemoryBytes);
  const TableStore::Table table = Share(ModuleOf("1"));
  EXPECT_EQ(std::memcmp(seen->bytes().data() + *store_->OffsetOf(*table), table->block().data(),
                        table->block().size()),
            0);
  EXPECT_FALSE(TableMemory::Adopt(memfd_create("other", MFD_CLOEXEC), 4096).ok());
}

// A program may still read them.
TEST_F(Store, TablesOutliveTheStore) {
  Make();
  const TableStore::Table table = Share(ModuleOf("1"));
  store_.reset();
  EXPECT_EQ(table->Find(100), UnwindRule::Stop());
}

}  // namespace
}  // namespace strobe::internal
