#include "strobe/worker/shared/shared_tables.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <memory>
#include <new>
#include <span>
#include <vector>

#include "strobe/worker/shared/table_store.h"

namespace strobe::internal {
namespace {

constexpr Address kText = 0x400000;
constexpr std::uint32_t kTextBytes = 1 << 18;

void Zero(void* memory, std::uint64_t bytes) { std::memset(memory, 0, bytes); }

std::shared_ptr<const UnwindTable> Table(std::uint32_t step) {
  std::vector<UnwindRow> rows;
  for (std::uint32_t offset = 0; offset < kTextBytes; offset += step)
    rows.push_back(
        {offset, offset / step % 2 == 0 ? UnwindRule::Stop() : UnwindRule::Unknown(), {}});
  return std::make_shared<const UnwindTable>(kTextBytes, rows, std::vector<SpecialRule>());
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): moved
SharedTables::Tables Modules(std::vector<UnwindModules::Entry> entries) {
  return std::make_shared<const UnwindModules>(std::move(entries));
}

// Both sides in one process, which has the store's memory at a second place.
class SharedTablesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    absl::StatusOr<TableMemory> memory = TableMemory::Create("tables", TableMemory::kBytes);
    ASSERT_TRUE(memory.ok()) << memory.status();
    bytes_ = memory->bytes();
    absl::StatusOr<std::shared_ptr<TableStore>> store = TableStore::Create();
    ASSERT_TRUE(store.ok()) << store.status();
    store_ = *std::move(store);
    absl::StatusOr<TableMemory> seen =
        TableMemory::Adopt(dup(store_->descriptor()), TableStore::kMemoryBytes);
    ASSERT_TRUE(seen.ok()) << seen.status();
    programs_store_ = *std::move(seen);
    caches_.resize(SharedCaches::kCaches * SharedCaches::CacheBytes() / sizeof(Page));
    tables_ = std::make_unique<SharedTables>(
        *std::move(memory),
        SharedCaches{.memory = std::as_writable_bytes(std::span(caches_)),
                     .address_in_program = reinterpret_cast<Address>(caches_.data())},
        StoreInProgram{.store = store_, .address = programs_store_.address()}, 4711, &Zero);
  }

  [[nodiscard]] bool IsInMemory(const void* object) const {
    return object >= bytes_.data() && object < bytes_.data() + bytes_.size();
  }

  std::span<std::byte> bytes_;
  std::shared_ptr<TableStore> store_;
  TableMemory programs_store_;  // the same memory, where the program has it
  struct alignas(4096) Page {
    std::byte bytes[4096];
  };
  std::vector<Page> caches_;
  std::unique_ptr<SharedTables> tables_;
};

TEST_F(SharedTablesTest, ACopySaysTheSameAndLiesInTheMemory) {
  const auto tables = Modules({{kText, kText + kTextBytes, Table(16)},
                               {kText + kTextBytes, kText + 2 * kTextBytes, nullptr}});
  const SharedTables::Tables copy = tables_->Expose(tables);
  ASSERT_NE(copy, nullptr);
  EXPECT_TRUE(IsInMemory(copy.get()));
  EXPECT_TRUE(IsInMemory(copy->entries().data()));
  EXPECT_TRUE(IsInMemory(copy->entries()[0].table.get()));
  EXPECT_EQ(copy->is_complete(), tables->is_complete());
  EXPECT_EQ(copy->serial() >> 32, 4711U);
  for (Address pc = kText; pc < kText + 2 * kTextBytes; pc += 7)
    ASSERT_EQ(copy->FindRule(pc), tables->FindRule(pc)) << std::hex << pc;
}

// The program reads a table of the store there, at its own address, and nothing is copied.
TEST_F(SharedTablesTest, ATableOfTheStoreIsReadThere) {
  Module module;
  module.start = kText;
  module.limit = kText + kTextBytes;
  module.build_id = "1";
  const auto table = store_->Share(module, 0, [] { return CfiModules::BuiltTable{Table(16)}; });
  const auto tables = Modules({{kText, kText + kTextBytes, table}});
  const SharedTables::Tables shown = tables_->Expose(tables);
  ASSERT_NE(shown, nullptr);
  const std::span<const std::byte> block = shown->entries()[0].table->block();
  EXPECT_EQ(block.data(), programs_store_.bytes().data() + *store_->OffsetOf(*table));
  EXPECT_NE(block.data(), table->block().data());
  for (Address pc = kText; pc < kText + kTextBytes; pc += 7)
    ASSERT_EQ(shown->FindRule(pc), tables->FindRule(pc)) << std::hex << pc;
}

TEST_F(SharedTablesTest, ATableIsCopiedOnce) {
  const auto table = Table(16);
  const auto first = tables_->Expose(Modules({{kText, kText + kTextBytes, table}}));
  const auto second = tables_->Expose(Modules({{kText, kText + kTextBytes, table}}));
  ASSERT_TRUE(first != nullptr && second != nullptr);
  EXPECT_EQ(first->entries()[0].table, second->entries()[0].table);
  EXPECT_NE(first->serial(), second->serial());
}

// As long as a capture may read tables, their cache of rules is theirs: another's would be wrong.
TEST_F(SharedTablesTest, EachHasACacheUntilThereIsNoneLeft) {
  std::vector<SharedTables::Tables> kept;
  for (std::size_t i = 0; i < SharedCaches::kCaches; ++i) {
    kept.push_back(tables_->Expose(Modules({{kText, kText + kTextBytes, Table(16)}})));
    ASSERT_NE(kept.back(), nullptr);
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(&kept[j]->cache(), &kept[i]->cache());
  }
  const auto next = Modules({{kText, kText + kTextBytes, Table(32)}});
  EXPECT_EQ(tables_->Expose(next), nullptr);
  kept.front()->cache().Add(kText, UnwindRule::Stop());
  kept.erase(kept.begin());
  const auto copy = tables_->Expose(next);
  ASSERT_NE(copy, nullptr);
  EXPECT_EQ(copy->cache().Find(kText), UnwindRule::Unknown()) << "the rule of other code";
}

// Tables come and go for as long as the program loads code; they take the room of one.
TEST_F(SharedTablesTest, RoomComesBack) {
  for (int i = 0; i < 3000; ++i)
    ASSERT_NE(tables_->Expose(Modules({{kText, kText + kTextBytes, Table(16)}})), nullptr) << i;
}

TEST_F(SharedTablesTest, WhereThereIsNoRoomThereIsNoCopy) {
  const auto table = Table(16);
  std::vector<UnwindModules::Entry> entries(TableMemory::kBytes / sizeof(UnwindModules::Entry) + 1,
                                            {kText, kText + kTextBytes, table});
  EXPECT_EQ(tables_->Expose(Modules(entries)), nullptr);
  EXPECT_NE(tables_->Expose(Modules({{kText, kText + kTextBytes, table}})), nullptr);
}

absl::StatusCode AdoptCode(int descriptor, Address address = 0) {
  return TableMemory::Adopt(descriptor, TableMemory::kBytes, address).status().code();
}

// A worker follows pointers that lie there.
TEST(TableMemory, NobodyElseCanWriteIt) {
  const absl::StatusOr<TableMemory> workers = TableMemory::Create("tables", TableMemory::kBytes);
  ASSERT_TRUE(workers.ok()) << workers.status();
  const int programs = dup(workers->descriptor());
  EXPECT_EQ(mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, programs, 0), MAP_FAILED);
  void* const seen = mmap(nullptr, 4096, PROT_READ, MAP_SHARED, programs, 0);
  ASSERT_NE(seen, MAP_FAILED);
  EXPECT_NE(mprotect(seen, 4096, PROT_READ | PROT_WRITE), 0);
  munmap(seen, 4096);
  EXPECT_NE(pwrite(programs, "x", 1, 0), 1);
  EXPECT_NE(ftruncate(programs, 0), 0);
  EXPECT_NE(fcntl(programs, F_ADD_SEALS, F_SEAL_WRITE), 0);
  workers->bytes()[0] = std::byte{1};  // the worker still can
  close(programs);
}

TEST(TableMemory, AProgramMapsItWhereTheWorkerHasIt) {
  absl::StatusOr<TableMemory> workers = TableMemory::Create("tables", TableMemory::kBytes);
  ASSERT_TRUE(workers.ok()) << workers.status();
  workers->bytes()[7] = std::byte{7};
  const int programs = dup(workers->descriptor());
  const Address place = workers->address();
  EXPECT_EQ(AdoptCode(dup(programs), place), absl::StatusCode::kAlreadyExists)
      << "here, the worker has it there";
  *workers = TableMemory();
  const absl::StatusOr<TableMemory> adopted =
      TableMemory::Adopt(programs, TableMemory::kBytes, place);
  ASSERT_TRUE(adopted.ok()) << adopted.status();
  EXPECT_EQ(adopted->address(), place);
  EXPECT_EQ(adopted->bytes().size(), TableMemory::kBytes);
  EXPECT_EQ(adopted->bytes()[7], std::byte{7});
}

TEST(TableMemory, WhatIsNoneIsRefused) {
  const absl::StatusOr<TableMemory> workers = TableMemory::Create("tables", TableMemory::kBytes);
  ASSERT_TRUE(workers.ok()) << workers.status();
  for (const Address wrong : {Address{4096}, workers->address() + 1})
    EXPECT_EQ(AdoptCode(dup(workers->descriptor()), wrong), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AdoptCode(memfd_create("not sealed", MFD_CLOEXEC)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AdoptCode(dup(0)), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(AdoptCode(-1), absl::StatusCode::kInvalidArgument);
  const int empty = memfd_create("sealed", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  ASSERT_EQ(fcntl(empty, F_ADD_SEALS, F_SEAL_SHRINK), 0);
  EXPECT_EQ(AdoptCode(empty), absl::StatusCode::kInvalidArgument);
}

// Also of a program that locks all of its memory: the system has nothing to give it beyond the end
// of the file.
TEST(TableMemory, TakesWhatIsUsed) {
  absl::StatusOr<TableMemory> workers = TableMemory::Create("tables", TableMemory::kBytes);
  ASSERT_TRUE(workers.ok()) << workers.status();
  FrontResource front(*workers);
  constexpr std::size_t kUsedBytes = 100'000;
  std::memset(front.allocate(kUsedBytes, 8), 1, kUsedBytes);
  struct stat file {};
  ASSERT_EQ(fstat(workers->descriptor(), &file), 0);
  EXPECT_GE(file.st_size, static_cast<off_t>(kUsedBytes));
  EXPECT_LE(file.st_size, off_t{2} << 20);
  std::memset(front.allocate(TableMemory::kBytes - kUsedBytes - 64, 8), 1, 64);
  EXPECT_THROW(static_cast<void>(front.allocate(4096, 8)), std::bad_alloc);
}

}  // namespace
}  // namespace strobe::internal
