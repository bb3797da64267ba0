#include "strobe/unwind/cfi_modules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>

#include "eh_frame_builder.h"

namespace strobe::testing {
namespace {

// A process of a few pieces of memory.
class FakeProcess {
 public:
  void Map(Address address, Bytes bytes) { pieces_[address] = std::move(bytes); }
  void Unmap(Address address) { pieces_.erase(address); }

  std::size_t Read(Address address, std::span<std::uint8_t> out) {
    reads_ += 1;
    for (const auto& [start, bytes] : pieces_) {
      if (address < start || address >= start + bytes.size()) continue;
      const std::size_t count = std::min(out.size(), static_cast<std::size_t>(start + bytes.size() - address));
      std::copy_n(bytes.begin() + static_cast<std::ptrdiff_t>(address - start), count, out.begin());
      return count;
    }
    return 0;
  }
  [[nodiscard]] int reads() const { return reads_; }

 private:
  std::map<Address, Bytes> pieces_;
  int reads_ = 0;
};

// Frame information of one function at the start of EhFrameBuilder's text, with a CFA of `words` words, moved up by `bias`.
Module MapModule(FakeProcess& process, Address bias, std::uint32_t words, bool is_terminated = true) {
  const Address header = EhFrameBuilder::kEhFrame + bias - 16;
  EhFrameBuilder builder;
  builder.Fde(builder.Cie(), EhFrameBuilder::kText + bias, 0x100, DefCfaOffset(words * 8));
  if (is_terminated) builder.Terminate();
  process.Map(header, Join({{1, 0x1B, 0x03, 0x3B}, Fixed(std::int32_t{12}), Bytes(8), builder.bytes}));
  return {.start = EhFrameBuilder::kText + bias,
          .limit = EhFrameBuilder::kTextLimit + bias,
          .file_offset = 0,
          .load_bias = bias,
          .path = "/lib/x",
          .build_id = "",
          .unwind_address = header};
}

class CfiModulesTest : public ::testing::Test {
 protected:
  UnwindRule RuleAt(const UnwindModules& snapshot, Address address) {
    const UnwindModules::Entry* entry = snapshot.Find(address);
    return entry == nullptr ? UnwindRule::Unknown() : entry->table->Find(static_cast<std::uint32_t>(address - entry->start));
  }

  FakeProcess process_;
  CfiModules modules_{CfiArchitecture::kX86_64,
                      [this](Address address, std::span<std::uint8_t> out) { return process_.Read(address, out); }};
};

TEST_F(CfiModulesTest, CompilesWhatIsLoaded) {
  const Module a = MapModule(process_, 0, 2);
  const Module b = MapModule(process_, 0x10000000, 3);
  const auto snapshot = modules_.Update(ModuleMap({a, b}));
  EXPECT_EQ(RuleAt(*snapshot, a.start), FromSp(2));
  EXPECT_EQ(RuleAt(*snapshot, b.start), FromSp(3));
  EXPECT_EQ(RuleAt(*snapshot, b.start + 0x100), UnwindRule::Unknown());
  EXPECT_EQ(modules_.statistics().fdes, 2u);
}

TEST_F(CfiModulesTest, KeepsTheTablesOfModulesThatStay) {
  const Module a = MapModule(process_, 0, 2);
  const auto before = modules_.Update(ModuleMap({a}));
  const int reads = process_.reads();
  const auto again = modules_.Update(ModuleMap({a}));
  EXPECT_EQ(process_.reads(), reads) << "nothing is read again";
  EXPECT_EQ(before->Find(a.start)->table, again->Find(a.start)->table);
  EXPECT_EQ(modules_.statistics().fdes, 1u);
}

TEST_F(CfiModulesTest, SnapshotsOutliveTheirModules) {
  const Module a = MapModule(process_, 0, 2);
  const auto before = modules_.Update(ModuleMap({a}));
  process_.Unmap(a.unwind_address);
  const auto after = modules_.Update(ModuleMap(std::vector<Module>()));
  EXPECT_EQ(RuleAt(*before, a.start), FromSp(2));
  EXPECT_EQ(after->Find(a.start), nullptr);
  EXPECT_EQ(modules_.statistics().fdes, 0u);
}

TEST_F(CfiModulesTest, AnotherModuleInTheSamePlaceIsCompiledAnew) {
  Module a = MapModule(process_, 0, 2);
  modules_.Update(ModuleMap({a}));
  a = MapModule(process_, 0, 5);
  a.path = "/lib/y";
  EXPECT_EQ(RuleAt(*modules_.Update(ModuleMap({a})), a.start), FromSp(5));
}

TEST_F(CfiModulesTest, AnUnterminatedSectionEndsWhereItsMemoryEnds) {
  const Module a = MapModule(process_, 0, 2, false);
  EXPECT_EQ(RuleAt(*modules_.Update(ModuleMap({a})), a.start), FromSp(2));
}

TEST_F(CfiModulesTest, ModulesWithoutReadableFrameInformationAreUnknown) {
  Module none = MapModule(process_, 0, 2);
  none.unwind_address = 0;
  Module gone = MapModule(process_, 0x10000000, 2);
  process_.Unmap(gone.unwind_address);
  Module broken = MapModule(process_, 0x20000000, 2);
  process_.Map(broken.unwind_address, {9, 9, 9, 9, 0, 0, 0, 0});
  Module good = MapModule(process_, 0x30000000, 7);
  const auto snapshot = modules_.Update(ModuleMap({none, gone, broken, good}));
  for (const Module& module : {none, gone, broken}) EXPECT_EQ(RuleAt(*snapshot, module.start), UnwindRule::Unknown());
  EXPECT_EQ(RuleAt(*snapshot, good.start), FromSp(7));
}

// A section longer than one piece of reading.
TEST_F(CfiModulesTest, LongSections) {
  EhFrameBuilder builder;
  const std::size_t cie = builder.Cie();
  Bytes fdes;
  for (Address i = 0; i < 0x8000; ++i) {
    EhFrameBuilder one;
    const Address at = builder.bytes.size() + fdes.size();
    // The CIE stands at the section's beginning, so each FDE says how far back that is.
    one.bytes.clear();
    const Bytes body = Join({Fixed(static_cast<std::uint32_t>(at + 4 - cie)), Fixed(EhFrameBuilder::kText + i * 4), Fixed(Address{4}),
                             Uleb(0), DefCfaOffset(8 * (1 + i % 50)), Bytes(16)});
    const Bytes entry = Join({Fixed(static_cast<std::uint32_t>(body.size())), body});
    fdes.insert(fdes.end(), entry.begin(), entry.end());
  }
  builder.bytes = Join({builder.bytes, fdes});
  builder.Terminate();
  ASSERT_GT(builder.bytes.size(), std::size_t{1} << 20);
  const Module a = MapModule(process_, 0, 2);
  process_.Map(a.unwind_address, Join({{1, 0x1B, 0x03, 0x3B}, Fixed(std::int32_t{12}), Bytes(8), builder.bytes}));
  const auto snapshot = modules_.Update(ModuleMap({a}));
  EXPECT_EQ(modules_.statistics().fdes, 0x8000u);
  for (Address i = 0; i < 0x8000; i += 111)
    ASSERT_EQ(RuleAt(*snapshot, a.start + i * 4 + 3), FromSp(static_cast<std::uint32_t>(1 + i % 50)));
}

}  // namespace
}  // namespace strobe::testing
