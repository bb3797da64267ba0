#include "../../src/unwind/module_tables.h"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <new>
#include <utility>
#include <vector>

#include "eh_frame_builder.h"
#include "strobe/testing/fakes/fake_memory.h"

namespace strobe::testing {
namespace {

using internal::CfiModules;
using internal::CfiSources;
using internal::EmptyTable;
using internal::ModuleTables;

constexpr Address kChunkBytes = UnwindModules::kChunkBytes;

// A module of two chunks and a half, with a function at the start of the first and of the last.
class ModuleTablesTest : public ::testing::Test {
 protected:
  ModuleTablesTest() {
    module_.start = kText;
    module_.limit = kText + 2 * kChunkBytes + kChunkBytes / 2;
    module_.path = "/lib/x";
    module_.eh_frame_address = EhFrameBuilder::kEhFrame;
    EhFrameBuilder builder;
    const std::size_t cie = builder.Cie();
    builder.Fde(cie, kText, 0x40, DefCfaOffset(16));
    builder.Fde(cie, kText + 2 * kChunkBytes, 0x40, DefCfaOffset(24));
    builder.Terminate();
    memory_.Map(EhFrameBuilder::kEhFrame, builder.bytes);
  }

  CfiSources Sources() { return {Architecture::kX86_64, read_, read_debug_frame_, &share_table_}; }
  static UnwindRule RuleAt(const ModuleTables& tables, std::size_t chunk, std::uint32_t offset) {
    const auto table = tables.Entry(chunk).table;
    return table == nullptr ? UnwindRule::Unknown() : table->Find(offset);
  }

  Module module_;
  FakeMemory memory_;
  const AnyMemoryReader read_ = std::ref(memory_);
  CfiModules::ReadDebugFrame read_debug_frame_;
  CfiModules::ShareTable share_table_;
};

TEST_F(ModuleTablesTest, OneEmptyTableServesAll) {
  EXPECT_EQ(EmptyTable(), EmptyTable());
  ASSERT_NE(EmptyTable(), nullptr);
  EXPECT_EQ(EmptyTable()->Find(0), UnwindRule::Unknown());
}

TEST_F(ModuleTablesTest, CanBuildWhatMayHaveFrameInformation) {
  EXPECT_TRUE(ModuleTables::CanBuild(module_, Sources()));
  Module none = module_;
  none.eh_frame_address = 0;
  EXPECT_FALSE(ModuleTables::CanBuild(none, Sources()));
  for (Address Module::*const place :
       {&Module::unwind_address, &Module::pdata_address, &Module::stack_end}) {
    Module with = none;
    with.*place = 0x1000;
    EXPECT_TRUE(ModuleTables::CanBuild(with, Sources()));
  }
  Module vdso = none;
  vdso.kind = ModuleKind::kVdso;
  EXPECT_TRUE(ModuleTables::CanBuild(vdso, Sources()));
  Module huge = module_;
  huge.limit = huge.start + (Address{1} << 32);
  EXPECT_FALSE(ModuleTables::CanBuild(huge, Sources()));
}

TEST_F(ModuleTablesTest, OnlyAnElfFileMayHaveADebugFrame) {
  module_.eh_frame_address = 0;
  read_debug_frame_ = [](const Module&) { return Bytes(); };
  EXPECT_TRUE(ModuleTables::CanBuild(module_, Sources()));
  Module other = module_;
  other.format = ImageFormat::kPe;
  EXPECT_FALSE(ModuleTables::CanBuild(other, Sources()));
  other = module_;
  other.kind = ModuleKind::kGeneratedCode;
  EXPECT_FALSE(ModuleTables::CanBuild(other, Sources()));
}

TEST_F(ModuleTablesTest, ReadsNothingBeforeTheFirstChunk) {
  const ModuleTables tables(module_, Sources());
  EXPECT_TRUE(memory_.reads().empty());
  EXPECT_EQ(tables.chunks(), 3u);
  EXPECT_EQ(tables.built(), 0u);
  EXPECT_EQ(tables.module(), module_);
  EXPECT_EQ(tables.Entry(1).start, kText + kChunkBytes);
  EXPECT_EQ(tables.Entry(1).limit, kText + 2 * kChunkBytes);
  EXPECT_EQ(tables.Entry(2).limit, module_.limit) << "the last chunk is shorter";
  EXPECT_EQ(tables.Entry(1).table, nullptr);
}

// lld's index has one of the functions that begin at an address, and that may be an empty one.
TEST_F(ModuleTablesTest, WhatTheLinkersIndexLacksIsReadFromTheFrameInformationItself) {
  constexpr Address kHeader = 0x500000;
  const auto from_header = [](Address address) {
    return Fixed(static_cast<std::uint32_t>(address - kHeader));
  };
  EhFrameBuilder builder;
  const std::size_t cie = builder.Cie();
  const std::size_t empty = builder.bytes.size();
  builder.Fde(cie, kText + 0x100, 0, {});
  builder.Fde(cie, kText + 0x100, 0x40, DefCfaOffset(16));
  builder.Terminate();
  FakeMemory memory;
  memory.Map(EhFrameBuilder::kEhFrame, builder.bytes);
  memory.Map(kHeader,
             Join({{1, 0x1B, 3, 0x3B},
                   Fixed(static_cast<std::uint32_t>(EhFrameBuilder::kEhFrame - kHeader - 4)),
                   Fixed(std::uint32_t{1}),
                   from_header(kText + 0x100),
                   from_header(EhFrameBuilder::kEhFrame + empty)}));
  const AnyMemoryReader read = std::ref(memory);
  module_.unwind_address = kHeader;
  module_.eh_frame_address = 0;
  ModuleTables tables(module_, {Architecture::kX86_64, read, read_debug_frame_, &share_table_});
  ASSERT_TRUE(tables.Build(0));
  EXPECT_EQ(RuleAt(tables, 0, 0x110), FromSp(2));
  EXPECT_FALSE(tables.is_suspect());
}

TEST_F(ModuleTablesTest, BuildsEachChunkOnce) {
  ModuleTables tables(module_, Sources());
  EXPECT_TRUE(tables.Build(2));
  EXPECT_FALSE(tables.Build(2));
  EXPECT_EQ(tables.built(), 1u);
  EXPECT_EQ(RuleAt(tables, 2, 0), FromSp(3));
  EXPECT_EQ(RuleAt(tables, 0, 0), UnwindRule::Unknown()) << "not built";
  EXPECT_TRUE(tables.Build(1));
  EXPECT_EQ(tables.Entry(1).table, EmptyTable()) << "it has no function";
  const std::size_t with_index = tables.memory_bytes();
  EXPECT_TRUE(tables.Build(0));
  EXPECT_EQ(RuleAt(tables, 0, 0), FromSp(2));
  EXPECT_EQ(tables.statistics().fdes, 2u);
  EXPECT_LT(tables.memory_bytes(), with_index) << "the index has served its purpose";
  EXPECT_FALSE(tables.is_suspect());
}

TEST_F(ModuleTablesTest, FunctionsThatOnlyTheFileDescribes) {
  std::size_t reads = 0;
  read_debug_frame_ = [&](const Module& module) {
    ++reads;
    EXPECT_EQ(module.path, "/lib/x");
    const Bytes cie =
        Join({Fixed(~std::uint32_t{0}), {1, 0, 1, 0x78, kRip}, DefCfa(kRsp, 8), Offset(kRip, 1)});
    const Bytes fde =
        Join({Fixed(std::uint32_t{0}), Fixed(kText), Fixed(std::uint64_t{0x80}), DefCfaOffset(80)});
    const Bytes other = Join({Fixed(std::uint32_t{0}), Fixed(kText + 0x100),
                              Fixed(std::uint64_t{0x80}), DefCfaOffset(32)});
    Bytes all;
    for (const Bytes& entry : {cie, fde, other})
      all = Join({all, Fixed(static_cast<std::uint32_t>(entry.size())), entry});
    return all;
  };
  ModuleTables tables(module_, Sources());
  tables.Build(0);
  EXPECT_EQ(RuleAt(tables, 0, 0), FromSp(2)) << "what is loaded comes first";
  EXPECT_EQ(RuleAt(tables, 0, 0x100), FromSp(4));
  tables.Build(1);
  EXPECT_EQ(reads, 1u);
}

TEST_F(ModuleTablesTest, IsSuspectIfSomethingCouldNotBeRead) {
  memory_.Unmap(EhFrameBuilder::kEhFrame);
  ModuleTables tables(module_, Sources());
  EXPECT_TRUE(tables.Build(0));
  EXPECT_EQ(tables.Entry(0).table, EmptyTable());
  EXPECT_TRUE(tables.is_suspect());
}

TEST_F(ModuleTablesTest, AStackEndHasARule) {
  module_.stack_end = kText + kChunkBytes + 0x80;
  ModuleTables tables(module_, Sources());
  tables.Build(1);
  EXPECT_EQ(RuleAt(tables, 1, 0x7F), UnwindRule::Stop()) << "a walk asks before a return address";
}

// A segment's last page goes on behind the end of the file, where nothing can be read.
TEST_F(ModuleTablesTest, CodeThatIsKnownHasItsRulesThoughTheLastPageEndsEarly) {
  const Bytes finish = {0x48, 0x31, 0xFF, 0xE8, 1, 2, 3, 4, 0xF4};  // xor rdi, rdi; call; hlt
  EhFrameBuilder builder;
  const std::size_t cie = builder.Cie();
  builder.Fde(cie, kText, 0x100, DefCfaOffset(16));
  builder.Fde(cie, kText + 0x200, 0x100, DefCfaOffset(16));
  builder.Terminate();
  FakeMemory memory;
  memory.Map(EhFrameBuilder::kEhFrame, builder.bytes);
  memory.Map(kText, Join({Bytes(0x100, 0x90), finish, Bytes(0x1F7, 0x90)}));
  const AnyMemoryReader read = std::ref(memory);
  ModuleTables tables(module_, {Architecture::kX86_64, read, read_debug_frame_, &share_table_});
  ASSERT_TRUE(tables.Build(0));
  EXPECT_EQ(RuleAt(tables, 0, 0xFF), UnwindRule::Stop()) << "a walk asks before a return address";
}

TEST_F(ModuleTablesTest, AStoreMayHaveTheTable) {
  std::vector<std::size_t> asked;
  bool builds = false;
  share_table_ = [&](const Module&, std::size_t chunk, const CfiModules::BuildTable& build) {
    asked.push_back(chunk);
    if (!builds) return EmptyTable();
    const CfiModules::BuiltTable built = build();
    EXPECT_TRUE(built.is_whole);
    return built.table;
  };
  ModuleTables tables(module_, Sources());
  tables.Build(0);
  EXPECT_EQ(tables.Entry(0).table, EmptyTable());
  EXPECT_TRUE(memory_.reads().empty()) << "the store had it";
  builds = true;
  tables.Build(2);
  EXPECT_EQ(RuleAt(tables, 2, 0), FromSp(3));
  EXPECT_EQ(asked, (std::vector<std::size_t>{0, 2}));
}

TEST_F(ModuleTablesTest, AStoreIsToldOfATableThatIsNotWhole) {
  memory_.Unmap(EhFrameBuilder::kEhFrame);
  bool is_whole = true;
  share_table_ = [&](const Module&, std::size_t, const CfiModules::BuildTable& build) {
    const CfiModules::BuiltTable built = build();
    is_whole = built.is_whole;
    return built.table;
  };
  ModuleTables tables(module_, Sources());
  tables.Build(0);
  EXPECT_FALSE(is_whole);
}

TEST_F(ModuleTablesTest, AChunkThatRanOutOfMemoryCanBeBuiltLater) {
  bool has_memory = false;
  share_table_ = [&](const Module&, std::size_t, const CfiModules::BuildTable& build) {
    if (!has_memory) throw std::bad_alloc();
    return build().table;
  };
  ModuleTables tables(module_, Sources());
  EXPECT_THROW(tables.Build(0), std::bad_alloc);
  EXPECT_EQ(tables.built(), 0u);
  EXPECT_EQ(tables.Entry(0).table, nullptr);
  has_memory = true;
  EXPECT_TRUE(tables.Build(0));
  EXPECT_EQ(RuleAt(tables, 0, 0), FromSp(2));
}

}  // namespace
}  // namespace strobe::testing
