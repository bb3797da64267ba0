#include "strobe/runtime/unwind_tables.h"

#include <gtest/gtest.h>

#include <utility>

#include "manual_traits.h"
#include "strobe/unwind/cfi_step.h"
#include "strobe/unwind/chain_unwinder.h"

namespace strobe::internal {
namespace {

using testing::ManualPlatform;
using testing::ManualTraits;

struct TableTraits : ManualTraits {
  using Unwinder = ChainUnwinder<CfiStep, FramePointerStep>;
};
static_assert(UnwindTables<TableTraits>::kIsLazy);
static_assert(!UnwindTables<ManualTraits>::kIsUsed);

constexpr Address kText = 0x400000;

class UnwindTablesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ManualPlatform::Reset();
    slot_ = *registry_.Register({.id = 1, .stack = {}}, "thread");
    tables_.Update(Program());
  }
  void TearDown() override {
    tables_.Withdraw();
    registry_.Unregister(slot_);
  }
  // Of four pieces of text, with just enough of a reason to have tables.
  static ModuleMap Program() {
    Module module;
    module.start = kText;
    module.limit = kText + 4 * UnwindModules::kPieceBytes;
    module.path = "/program";
    module.stack_end = kText + 16;
    return ModuleMap({module});
  }
  const UnwindModules* Published() { return registry_.arena()->unwind_modules.load(); }
  static bool IsThere(const UnwindModules* tables, Address pc) {
    return tables->Find(pc)->table != nullptr;
  }

  ThreadRegistry<TableTraits> registry_{4, 4096};
  CollectorCounters counters_;
  UnwindTables<TableTraits> tables_{registry_, counters_};
  ThreadSlot<TableTraits>* slot_ = nullptr;
};

TEST_F(UnwindTablesTest, NothingIsBuiltBeforeItIsAskedFor) {
  EXPECT_EQ(counters_.tables.load(), 0u);
  EXPECT_FALSE(IsThere(Published(), kText));
}

TEST_F(UnwindTablesTest, WhatIsBuiltIsSeenByCapturesOncePublished) {
  tables_.Build(kText + 5);
  EXPECT_TRUE(IsThere(tables_.current(), kText));
  EXPECT_FALSE(IsThere(Published(), kText));
  tables_.Publish();
  EXPECT_TRUE(IsThere(Published(), kText));
  EXPECT_FALSE(IsThere(Published(), kText + UnwindModules::kPieceBytes));
  EXPECT_EQ(counters_.tables.load(), 1u);
  EXPECT_EQ(counters_.table_bytes.load(),
            Published()->memory_bytes() + registry_.arena()->cfi->memory_bytes());
}

TEST_F(UnwindTablesTest, TablesStayWhileACaptureMayReadThem) {
  const UnwindModules* const seen = Published();
  const std::uint64_t serial = seen->serial();
  slot_->is_capturing = true;
  tables_.Build(kText);
  tables_.Publish();
  EXPECT_NE(Published()->serial(), serial);
  EXPECT_EQ(seen->serial(), serial) << "a sanitizer would tell";
  slot_->is_capturing = false;
  tables_.Publish();
}

TEST_F(UnwindTablesTest, ACaptureThatStandsStillKeepsABoundedNumberOfTables) {
  slot_->is_capturing = true;
  std::uint64_t last = 0;
  std::size_t shown = 0;
  for (std::size_t i = 0; i < 3 * UnwindTables<TableTraits>::kMaxOld; ++i) {
    tables_.Update(Program());
    if (std::exchange(last, Published()->serial()) != Published()->serial()) ++shown;
  }
  EXPECT_EQ(shown, UnwindTables<TableTraits>::kMaxOld + 1);
  EXPECT_TRUE(Published()->entries().empty() && !Published()->is_complete())
      << "code may have gone of which the last ones speak";
  tables_.Build(kText);
  EXPECT_TRUE(IsThere(tables_.current(), kText)) << "the collector goes on";
  slot_->is_capturing = false;
  tables_.Publish();
  EXPECT_TRUE(IsThere(Published(), kText));
}

TEST_F(UnwindTablesTest, NothingIsLeftToCapturesWithdrawnFrom) {
  slot_->is_capturing = true;
  for (std::size_t i = 0; i <= UnwindTables<TableTraits>::kMaxOld; ++i) tables_.Update(Program());
  slot_->is_capturing = false;
  tables_.Withdraw();
  EXPECT_EQ(Published(), nullptr);
  {
    UnwindTables<TableTraits> never_started(registry_, counters_);
    never_started.Update(Program());
    EXPECT_NE(Published(), nullptr);
  }
  EXPECT_EQ(Published(), nullptr);
}

TEST_F(UnwindTablesTest, TheNextSessionFindsWhatThisOneBuilt) {
  tables_.Build(kText);
  tables_.Withdraw();
  EXPECT_EQ(Published(), nullptr);
  UnwindTables<TableTraits> next(registry_, counters_);
  next.Update(Program());
  EXPECT_TRUE(IsThere(Published(), kText));
  next.Withdraw();
}

}  // namespace
}  // namespace strobe::internal
