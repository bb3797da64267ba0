#include "strobe/runtime/code/loaded_code.h"

#include <gtest/gtest.h>

#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "../table_traits.h"
#include "strobe/arch/current_registers.h"
#include "strobe/platform/native.h"
#include "strobe/unwind/stack_memory.h"

namespace strobe::internal {
namespace {

using testing::kText;
using testing::ManualPlatform;
using testing::ManualTraits;
using testing::TableTraits;

static_assert(LoadedCode<TableTraits>::kIsLazy);
static_assert(!LoadedCode<ManualTraits>::kHasTables);

// Of four pieces of text, with just enough of a reason to have tables.
Module Program() {
  Module module;
  module.start = kText;
  module.limit = kText + 4 * UnwindModules::kChunkBytes;
  module.path = "/program";
  module.stack_end = kText + 16;
  return module;
}

// What an intake is told, and what captures were shown at that time.
struct Intake {
  void SetModules(std::uint32_t generation, const ModuleMap& map) {
    if (has_no_memory) throw std::bad_alloc();
    generation_before = place.generation;
    last_generation = generation;
    modules = map;
    ++calls;
  }
  const PublishedCode& place;
  bool has_no_memory = false;
  std::uint32_t generation_before = 0;
  std::uint32_t last_generation = 0;
  ModuleMap modules{};
  int calls = 0;
};

class LoadedCodeTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ManualPlatform::Reset();
    Load(Program());
    code_ = std::make_unique<LoadedCode<TableTraits>>(generated_, counters_.code);
    Begin();
  }
  void Begin() {
    code_->Begin(
        place_, [this] { return is_capturing_; }, intake_);
  }
  static void Load(const Module& module) {
    ManualPlatform::With([&](auto& state) {
      state.modules.push_back(module);
      ++state.module_version;
    });
  }
  // Something changes, and all stays as it was.
  void Touch() {
    ManualPlatform::With([](auto& state) { ++state.module_version; });
    code_->RefreshIfChanged(intake_);
  }
  const UnwindModules* Published() { return place_.tables.load(); }
  static bool IsThere(const UnwindModules* tables, Address pc) {
    return tables->Find(pc)->table != nullptr;
  }

  PublishedCode place_;
  Intake intake_{place_};
  CodeRegistry generated_;
  CollectorCounters counters_;
  bool is_capturing_ = false;
  std::unique_ptr<LoadedCode<TableTraits>> code_;
};

TEST_F(LoadedCodeTest, AChangeIsANewGenerationThatTheIntakeKnowsFirst) {
  EXPECT_EQ(code_->generation(), 1u);
  EXPECT_EQ(intake_.modules.modules().size(), 1u);
  code_->RefreshIfChanged(intake_);
  EXPECT_EQ(intake_.calls, 1) << "nothing has changed";
  Module plugin = Program();
  plugin.start = 0x50000000;
  plugin.limit = plugin.start + 0x1000;
  Load(plugin);
  code_->RefreshIfChanged(intake_);
  EXPECT_EQ(intake_.last_generation, 2u);
  EXPECT_EQ(intake_.generation_before, 1u) << "no capture carries a number yet that is unknown";
  EXPECT_EQ(intake_.modules, code_->modules());
  EXPECT_EQ(code_->modules().modules().size(), 2u);
  EXPECT_EQ(place_.generation, 2u);
  EXPECT_NE(Published()->Find(plugin.start), nullptr);
  EXPECT_EQ(counters_.code.refreshes, 2u);
}

TEST_F(LoadedCodeTest, GeneratedCodeIsAModuleAndTheLoaderIsNotAskedForIt) {
  const GeneratedCode code{
      .name = "jit", .start = reinterpret_cast<const void*>(0x60000000), .bytes = 64};
  ASSERT_TRUE(generated_.Add(code).ok());
  code_->RefreshIfChanged(intake_);
  EXPECT_EQ(code_->generation(), 2u);
  EXPECT_EQ(code_->modules().modules().size(), 2u);
  generated_.Remove(0x60000000);
  code_->RefreshIfChanged(intake_);
  EXPECT_EQ(code_->modules().modules().size(), 1u);
  EXPECT_EQ(ManualPlatform::With([](auto& state) { return state.module_listings; }), 1);
}

TEST_F(LoadedCodeTest, WhatMemoryRanOutInIsDoneAgain) {
  intake_.has_no_memory = true;
  EXPECT_THROW(Touch(), std::bad_alloc);
  EXPECT_EQ(place_.generation, 1u);
  intake_.has_no_memory = false;
  code_->RefreshIfChanged(intake_);
  EXPECT_EQ(intake_.calls, 2);
  EXPECT_EQ(place_.generation, intake_.last_generation);
}

TEST_F(LoadedCodeTest, NothingIsBuiltBeforeItIsAskedFor) {
  EXPECT_EQ(counters_.code.tables, 0u);
  EXPECT_FALSE(IsThere(Published(), kText));
}

struct OwnCodeTraits : ManualTraits {
  using Platform = NativePlatform;
  using Unwinder = TableTraits::Unwinder;
};

TEST_F(LoadedCodeTest, WhatAThreadIsInCanBeBuiltAtOnce) {
  const CurrentRegisters registers;
  if (registers.get() == nullptr) GTEST_SKIP() << "without registers there is no walk";
  const StackBounds stack = NativePlatform::CurrentThread().stack;
  PublishedCode place;
  Intake intake{place};
  LoadedCode<OwnCodeTraits> code(generated_, counters_.code);
  code.Begin(
      place, [] { return false; }, intake);
  const auto is_pending = [&] {
    const LiveStackMemory memory(registers.get()->sp, stack.high);
    std::vector<Address> frames(kMaxFramesLimit);
    return OwnCodeTraits::Unwinder(place.tables.load())
        .Unwind(*registers.get(), memory, frames)
        .is_pending;
  };
  ASSERT_TRUE(is_pending());
  code.BuildFor(*registers.get(), {});
  EXPECT_TRUE(is_pending()) << "it is on another stack";
  code.BuildFor(*registers.get(), stack);
  EXPECT_FALSE(is_pending());
}

TEST_F(LoadedCodeTest, WhatIsBuiltIsSeenByCapturesOncePublished) {
  code_->Build(kText + 5);
  EXPECT_TRUE(IsThere(code_->tables(), kText));
  EXPECT_FALSE(IsThere(Published(), kText));
  code_->Publish();
  EXPECT_TRUE(IsThere(Published(), kText));
  EXPECT_FALSE(IsThere(Published(), kText + UnwindModules::kChunkBytes));
  EXPECT_EQ(counters_.code.tables, 1u);
  EXPECT_GT(counters_.code.table_bytes, Published()->memory_bytes());
  code_->BuildAll();
  code_->Publish();
  EXPECT_TRUE(IsThere(Published(), kText + UnwindModules::kChunkBytes));
  EXPECT_EQ(counters_.code.tables, 4u);
}

TEST_F(LoadedCodeTest, TablesStayWhileACaptureMayReadThem) {
  const UnwindModules* const seen = Published();
  const std::uint64_t serial = seen->serial();
  is_capturing_ = true;
  code_->Build(kText);
  code_->Publish();
  EXPECT_NE(Published()->serial(), serial);
  EXPECT_EQ(seen->serial(), serial) << "a sanitizer would tell";
  is_capturing_ = false;
  code_->Publish();
}

TEST_F(LoadedCodeTest, ACaptureThatStandsStillLearnsNothingOfCodeThatMayHaveGone) {
  is_capturing_ = true;
  std::uint64_t last = 0;
  std::size_t shown = 0;
  for (std::size_t i = 0; i < 3 * TablePublisher::kMaxOld; ++i) {
    Touch();
    if (std::exchange(last, Published()->serial()) != Published()->serial()) ++shown;
  }
  EXPECT_EQ(shown, TablePublisher::kMaxOld + 1);
  EXPECT_TRUE(Published()->entries().empty() && !Published()->is_complete());
  code_->Build(kText);
  EXPECT_TRUE(IsThere(code_->tables(), kText)) << "the collector goes on";
  is_capturing_ = false;
  code_->Publish();
  EXPECT_TRUE(IsThere(Published(), kText));
}

TEST_F(LoadedCodeTest, TheNextSessionFindsWhatThisOneBuilt) {
  code_->Build(kText);
  Begin();
  EXPECT_EQ(intake_.calls, 2) << "another session's intake knows of no module yet";
  EXPECT_EQ(code_->generation(), 2u);
  EXPECT_TRUE(IsThere(Published(), kText));
  EXPECT_EQ(ManualPlatform::With([](auto& state) { return state.module_listings; }), 1);
}

TEST_F(LoadedCodeTest, ItsEndLeavesNothingToCaptures) {
  EXPECT_NE(Published(), nullptr);
  code_.reset();
  EXPECT_EQ(Published(), nullptr);
}

TEST_F(LoadedCodeTest, AnUnwinderWithoutTablesHasModulesOnly) {
  PublishedCode place;
  LoadedCode<ManualTraits> code(generated_, counters_.code);
  Intake intake{place};
  code.Begin(
      place, [] { return false; }, intake);
  code.RetryUnread();
  code.RefreshIfChanged(intake);
  code.Publish();
  EXPECT_EQ(place.generation, 1u);
  EXPECT_EQ(place.tables, nullptr);
  EXPECT_EQ(code.tables(), nullptr);
}

}  // namespace
}  // namespace strobe::internal
