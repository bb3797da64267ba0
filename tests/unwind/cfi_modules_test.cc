#include "strobe/unwind/cfi_modules.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>

#include "eh_frame_builder.h"
#include "strobe/testing/fakes/fake_memory.h"
#include "strobe/unwind/cfi_step.h"
#include "strobe/unwind/stack_memory.h"

namespace strobe::testing {
namespace {

// Frame information of one function at the start of EhFrameBuilder's text, with a CFA of `words`
// words, moved up by `bias`.
Module MapModule(FakeMemory& process, Address bias, std::uint32_t words,
                 bool is_terminated = true) {
  const Address header = EhFrameBuilder::kEhFrame + bias - 16;
  EhFrameBuilder builder;
  builder.Fde(builder.Cie(), kText + bias, 0x100, DefCfaOffset(words * 8));
  if (is_terminated) builder.Terminate();
  process.Map(header,
              Join({{1, 0x1B, 0x03, 0x3B}, Fixed(std::int32_t{12}), Bytes(8), builder.bytes}));
  return {.start = kText + bias,
          .limit = kTextLimit + bias,
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
    return entry == nullptr
               ? UnwindRule::Unknown()
               : entry->table->Find(static_cast<std::uint32_t>(address - entry->start));
  }

  std::shared_ptr<const UnwindModules> UpdateAll(const ModuleMap& map) {
    modules_.Update(map);
    modules_.BuildAll();
    return modules_.Snapshot();
  }

  FakeMemory process_;
  internal::CfiModules modules_{Architecture::kX86_64, std::ref(process_)};
};

TEST_F(CfiModulesTest, CompilesWhatIsLoaded) {
  const Module a = MapModule(process_, 0, 2);
  const Module b = MapModule(process_, 0x10000000, 3);
  const auto snapshot = UpdateAll(ModuleMap({a, b}));
  EXPECT_EQ(RuleAt(*snapshot, a.start), FromSp(2));
  EXPECT_EQ(RuleAt(*snapshot, b.start), FromSp(3));
  EXPECT_EQ(RuleAt(*snapshot, b.start + 0x100), UnwindRule::Unknown());
  EXPECT_EQ(modules_.statistics().fdes, 2u);
}

// As a record of a plug-in is finished that has been closed meanwhile.
TEST_F(CfiModulesTest, WhatHasBeenUnloadedIsStillKnownToRecordsOfBefore) {
  FakeMemory files;
  const Module plugin = MapModule(files, 0x10000000, 3);
  Module here = MapModule(process_, 0, 2);
  internal::CfiModules modules{Architecture::kX86_64, std::ref(process_), nullptr, nullptr,
                               [&](const Module&) { return AnyMemoryReader(std::ref(files)); }};
  modules.Update(ModuleMap({here}), 1);
  modules.Update(ModuleMap({here, plugin}), 2);
  modules.Update(ModuleMap({here}), 3);
  EXPECT_FALSE(modules.HasUnloaded(0));
  EXPECT_TRUE(modules.HasUnloaded(1)) << "captured while the plug-in was just being loaded";
  EXPECT_TRUE(modules.HasUnloaded(2));
  EXPECT_FALSE(modules.HasUnloaded(3));
  EXPECT_TRUE(modules.HasUnloadedAt(2, plugin.start));
  EXPECT_FALSE(modules.HasUnloadedAt(2, here.start));
  EXPECT_EQ(modules.SnapshotOf(2)->Find(plugin.start)->table, nullptr) << "not built yet";
  modules.BuildOf(2, plugin.start);
  modules.BuildOf(2, here.start);
  EXPECT_EQ(RuleAt(*modules.SnapshotOf(2), plugin.start), FromSp(3));
  EXPECT_EQ(RuleAt(*modules.SnapshotOf(2), here.start), FromSp(2));
  EXPECT_EQ(modules.Snapshot()->Find(plugin.start), nullptr);
  EXPECT_TRUE(modules.HasUnloadedAt(2, plugin.start));
  // Others take their place, one after the other.
  for (std::uint32_t i = 0; i < internal::CfiModules::kMaxUnloaded; ++i) {
    here.build_id += "0";
    modules.Update(ModuleMap({here}), 4 + i);
  }
  EXPECT_FALSE(modules.HasUnloadedAt(2, plugin.start)) << "no more than so many are kept";
}

TEST_F(CfiModulesTest, AnUnloadedModuleWhoseFileHasGoneIsNotKnown) {
  FakeMemory files;
  const Module plugin = MapModule(files, 0x10000000, 3);
  internal::CfiModules modules{Architecture::kX86_64, std::ref(process_), nullptr, nullptr,
                               [](const Module&) { return AnyMemoryReader(&ReadNothing); }};
  modules.Update(ModuleMap({plugin}), 1);
  modules.Update(ModuleMap(), 2);
  EXPECT_TRUE(modules.HasUnloadedAt(1, plugin.start));
  modules.BuildOf(1, plugin.start);
  EXPECT_FALSE(modules.HasUnloadedAt(1, plugin.start));
}

TEST_F(CfiModulesTest, KeepsTheTablesOfModulesThatStay) {
  const Module a = MapModule(process_, 0, 2);
  const auto before = UpdateAll(ModuleMap({a}));
  const std::size_t reads = process_.reads().size();
  const auto again = UpdateAll(ModuleMap({a}));
  EXPECT_EQ(process_.reads().size(), reads) << "nothing is read again";
  EXPECT_EQ(before->Find(a.start)->table, again->Find(a.start)->table);
  EXPECT_EQ(modules_.statistics().fdes, 1u);
}

TEST_F(CfiModulesTest, SnapshotsOutliveTheirModules) {
  const Module a = MapModule(process_, 0, 2);
  const auto before = UpdateAll(ModuleMap({a}));
  process_.Unmap(a.unwind_address);
  const auto after = UpdateAll(ModuleMap(std::vector<Module>()));
  EXPECT_EQ(RuleAt(*before, a.start), FromSp(2));
  EXPECT_EQ(after->Find(a.start), nullptr);
  EXPECT_EQ(modules_.statistics().fdes, 0u);
}

TEST_F(CfiModulesTest, AnotherModuleInTheSamePlaceIsCompiledAnew) {
  Module a = MapModule(process_, 0, 2);
  UpdateAll(ModuleMap({a}));
  a = MapModule(process_, 0, 5);
  a.path = "/lib/y";
  EXPECT_EQ(RuleAt(*UpdateAll(ModuleMap({a})), a.start), FromSp(5));
}

TEST_F(CfiModulesTest, WalksForgetTheRulesOfModulesThatWent) {
  const Address word = kText + 0x80;
  const std::vector<Address> words(8, word);
  const CopiedStackMemory memory(0x7000, std::as_bytes(std::span(words)));
  const auto cfa_at = [&](const UnwindModules& snapshot) {
    FrameState<X86_64Registers> state{.registers = {.pc = word, .sp = 0x7000}};
    CfiStep(&snapshot).Step(state, memory);
    return state.registers.sp;
  };
  Module a = MapModule(process_, 0, 2);
  const Module b = MapModule(process_, 0x10000000, 3);
  const auto before = UpdateAll(ModuleMap({a, b}));
  EXPECT_EQ(cfa_at(*before), 0x7010u);
  a = MapModule(process_, 0, 5);
  a.path = "/lib/y";
  const auto after = UpdateAll(ModuleMap({a, b}));
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(cfa_at(*after), 0x7028u);
    EXPECT_EQ(cfa_at(*before), 0x7010u);
  }
}

TEST_F(CfiModulesTest, AnUnterminatedSectionEndsWhereItsMemoryEnds) {
  const Module a = MapModule(process_, 0, 2, false);
  EXPECT_EQ(RuleAt(*UpdateAll(ModuleMap({a})), a.start), FromSp(2));
}

TEST_F(CfiModulesTest, ModulesWithoutReadableFrameInformationAreUnknown) {
  Module none = MapModule(process_, 0, 2);
  none.unwind_address = 0;
  Module gone = MapModule(process_, 0x10000000, 2);
  process_.Unmap(gone.unwind_address);
  Module broken = MapModule(process_, 0x20000000, 2);
  process_.Map(broken.unwind_address, {9, 9, 9, 9, 0, 0, 0, 0});
  Module good = MapModule(process_, 0x30000000, 7);
  const auto snapshot = UpdateAll(ModuleMap({none, gone, broken, good}));
  for (const Module& module : {none, gone, broken})
    EXPECT_EQ(RuleAt(*snapshot, module.start), UnwindRule::Unknown());
  EXPECT_EQ(RuleAt(*snapshot, good.start), FromSp(7));
}

TEST_F(CfiModulesTest, StacksEndWhereTheirModuleSaysSo) {
  Module a = MapModule(process_, 0, 2);
  a.stack_end = a.start + 0x1000;
  const auto snapshot = UpdateAll(ModuleMap({a}));
  EXPECT_EQ(RuleAt(*snapshot, a.start + 0xFFF), UnwindRule::Stop());
  EXPECT_EQ(RuleAt(*snapshot, a.start + 0x1000), UnwindRule::Unknown());
}

// As a coroutine library's assembler has it: xor rdi, rdi; call _exit; hlt, where no frame
// information is.
TEST_F(CfiModulesTest, StacksEndWhereAssemblerLetsCoroutinesReturnTo) {
  const Module a = MapModule(process_, 0, 2);
  const Bytes finish = {0x48, 0x31, 0xFF, 0xE8, 0, 0, 0, 0, 0xF4};
  process_.Map(a.start, Join({Bytes(0x20), finish, Bytes(0x1000 - 0x20), finish, Bytes(0x100)}));
  const auto snapshot = UpdateAll(ModuleMap({a}));
  EXPECT_EQ(RuleAt(*snapshot, a.start + 0x1F), FromSp(2)) << "frame information goes before";
  EXPECT_EQ(RuleAt(*snapshot, a.start + 0x1008), UnwindRule::Stop());
  EXPECT_NE(RuleAt(*snapshot, a.start + 0x1009), UnwindRule::Stop());
}

// Of a function behind those that it describes: push %rbx; pop %rbx; ret.
TEST_F(CfiModulesTest, CodeThatNoFrameInformationDescribesIsDecoded) {
  const Module a = MapModule(process_, 0, 2);
  process_.Map(a.start, Join({Bytes(0x1000), Bytes{0x53, 0x5B, 0xC3}, Bytes(0x100)}));
  const auto snapshot = UpdateAll(ModuleMap({a}));
  EXPECT_EQ(RuleAt(*snapshot, a.start), FromSp(2)) << "frame information goes before";
  EXPECT_EQ(RuleAt(*snapshot, a.start + 0x1000), FromSp(1));
  EXPECT_EQ(RuleAt(*snapshot, a.start + 0x1001), FromSp(2));
}

TEST_F(CfiModulesTest, SignalsOfAarch64AreLeftThroughTheVdso) {
  Module vdso = MapModule(process_, 0, 2);
  vdso.kind = ModuleKind::kVdso;
  process_.Map(vdso.start, Join({Bytes(0x200), Fixed(std::uint32_t{0xD2801168}),
                                 Fixed(std::uint32_t{0xD4000001}), Bytes(0x100)}));
  internal::CfiModules aarch64(Architecture::kAarch64, std::ref(process_));
  aarch64.Update(ModuleMap({vdso}));
  aarch64.BuildAll();
  const auto snapshot = aarch64.Snapshot();
  const UnwindRule rule = RuleAt(*snapshot, vdso.start + 0x200 - 1);
  ASSERT_EQ(rule.kind(), UnwindRule::Kind::kSpecial);
  EXPECT_TRUE(snapshot->Find(vdso.start)->table->Special(rule).is_signal_frame);
}

// A section longer than one chunk of reading.
TEST_F(CfiModulesTest, LongSections) {
  EhFrameBuilder builder;
  const std::size_t cie = builder.Cie();
  Bytes fdes;
  for (Address i = 0; i < 0x8000; ++i) {
    EhFrameBuilder one;
    const Address at = builder.bytes.size() + fdes.size();
    // The CIE stands at the section's beginning, so each FDE says how far back that is.
    one.bytes.clear();
    const Bytes body =
        Join({Fixed(static_cast<std::uint32_t>(at + 4 - cie)), Fixed(kText + i * 4),
              Fixed(Address{4}), Uleb(0), DefCfaOffset(8 * (1 + i % 50)), Bytes(16)});
    const Bytes entry = Join({Fixed(static_cast<std::uint32_t>(body.size())), body});
    fdes.insert(fdes.end(), entry.begin(), entry.end());
  }
  builder.bytes = Join({builder.bytes, fdes});
  builder.Terminate();
  ASSERT_GT(builder.bytes.size(), std::size_t{1} << 20);
  const Module a = MapModule(process_, 0, 2);
  process_.Map(a.unwind_address,
               Join({{1, 0x1B, 0x03, 0x3B}, Fixed(std::int32_t{12}), Bytes(8), builder.bytes}));
  const auto snapshot = UpdateAll(ModuleMap({a}));
  EXPECT_EQ(modules_.statistics().fdes, 0x8000u);
  for (Address i = 0; i < 0x8000; i += 111)
    ASSERT_EQ(RuleAt(*snapshot, a.start + i * 4 + 3),
              FromSp(static_cast<std::uint32_t>(1 + i % 50)));
}

// A module of several chunks, whose functions are of all lengths, lie in any order and reach over
// the chunks' borders.
class LargeModule {
 public:
  static constexpr Address kTextStart = 0x10000000;
  static constexpr Address kChunks = 4;
  static constexpr Address kTextLimit = kTextStart + kChunks * UnwindModules::kChunkBytes - 0x5000;
  static constexpr Address kHeader = 0x20000000;

  explicit LargeModule(unsigned seed) {
    std::mt19937 random(seed);
    struct Function {
      Address begin;
      Address length;
    };
    std::vector<Function> functions;
    for (Address at = kTextStart; at < kTextLimit;) {
      const Address length = std::min<Address>(
          random() % 300 == 0 ? 40000 + random() % 300000 : 16 + random() % 4000, kTextLimit - at);
      functions.push_back({at, length});
      at += length + (random() % 4 == 0 ? random() % 500 : 0);
    }
    std::shuffle(functions.begin(), functions.end(), random);
    std::size_t cie = builder_.Cie();
    for (const Function& function : functions) {
      if (random() % 50 == 0) cie = builder_.Cie();
      places_[function.begin] = builder_.bytes.size();
      Bytes program;
      for (int row = 0; row < 8; ++row) {
        program =
            Join({program, DefCfaOffset(8 * (1 + random() % 60)), Offset(kRbx, 2 + random() % 4),
                  random() % 3 == 0
                      ? Advance4(static_cast<std::uint32_t>(random() % (function.length / 8 + 1)))
                      : Advance(random() % 32)});
      }
      builder_.Fde(cie, function.begin, function.length, program);
    }
    builder_.Terminate();
  }

  // In memory as linkers lay it out: the index, then .eh_frame.
  Module Map(FakeMemory& process, bool has_table) {
    const auto header_bytes = static_cast<std::int32_t>(12 + 8 * places_.size());
    Bytes table;
    for (const auto& [begin, place] : places_) {
      table = Join({table, Fixed(static_cast<std::int32_t>(begin - kHeader)),
                    Fixed(static_cast<std::int32_t>(header_bytes + place))});
    }
    const auto table_encoding = static_cast<std::uint8_t>(has_table ? 0x3B : 0xFF);
    process.Map(kHeader, Join({{1, 0x1B, 0x03, table_encoding},
                               Fixed(header_bytes - 4),
                               Fixed(static_cast<std::uint32_t>(places_.size())),
                               table,
                               builder_.bytes}));
    return {.start = kTextStart,
            .limit = kTextLimit,
            .file_offset = 0,
            .load_bias = 0,
            .path = "/lib/large",
            .build_id = "",
            .unwind_address = kHeader};
  }
  // Without an index, as plain -static links it.
  Module MapWithoutIndex(FakeMemory& process) {
    Module module = Map(process, false);
    module.unwind_address = 0;
    module.eh_frame_address = kHeader + static_cast<Address>(12 + 8 * places_.size());
    return module;
  }

  // All of it at once.
  [[nodiscard]] CompiledCfi Compile() const {
    return CompileCfi({.architecture = Architecture::kX86_64,
                       .eh_frame = builder_.bytes,
                       .eh_frame_address = EhFrameBuilder::kEhFrame,
                       .text_start = kTextStart,
                       .text_limit = kTextLimit});
  }
  [[nodiscard]] std::size_t functions() const { return places_.size(); }

 private:
  EhFrameBuilder builder_;
  std::map<Address, std::size_t> places_;  // of FDEs in the section, by the function's start
};

TEST_F(CfiModulesTest, ChunksSayWhatTheWholeSays) {
  LargeModule large(7);
  CompiledCfi compiled = large.Compile();
  const UnwindTable whole(LargeModule::kTextLimit - LargeModule::kTextStart, compiled.rows,
                          compiled.specials);
  int reads = 0;
  for (const Module& module :
       {large.Map(process_, true), large.Map(process_, false), large.MapWithoutIndex(process_)}) {
    UpdateAll(ModuleMap(std::vector<Module>()));
    const auto snapshot = UpdateAll(ModuleMap({module}));
    for (Address pc = module.start; pc < module.limit; ++pc) {
      const UnwindModules::Entry* entry = snapshot->Find(pc);
      ASSERT_NE(entry, nullptr);
      const auto within = static_cast<std::uint32_t>(pc - entry->start);
      const auto offset = static_cast<std::uint32_t>(pc - module.start);
      const UnwindRule rule = whole.Find(offset);
      ASSERT_EQ(entry->table->Find(within), rule) << std::hex << pc;
      if (rule == UnwindRule::Unknown()) continue;
      ASSERT_TRUE(entry->table->FindSpecialRegister(within) == whole.FindSpecialRegister(offset))
          << std::hex << pc;
    }
    EXPECT_EQ(modules_.statistics().fdes, large.functions());
    EXPECT_EQ(modules_.statistics().rows, compiled.statistics.rows);
    EXPECT_EQ(modules_.statistics().broken_entries, 0u);
    reads = process_.reads().size();
  }
  EXPECT_LT(reads, 3 * 200) << "many functions are read at a time";
}

TEST_F(CfiModulesTest, ASectionOfAKnownLengthEndsThere) {
  LargeModule large(12);
  Module module = large.MapWithoutIndex(process_);
  module.eh_frame_bytes = 4000;
  UpdateAll(ModuleMap({module}));
  EXPECT_GT(modules_.statistics().fdes, 10u);
  EXPECT_LT(modules_.statistics().fdes, large.functions() / 2);
  EXPECT_EQ(modules_.statistics().broken_entries, 0u);
}

TEST_F(CfiModulesTest, OnlyWhatIsAskedForIsBuilt) {
  LargeModule large(8);
  const Module module = large.Map(process_, true);
  modules_.Update(ModuleMap({module}));
  EXPECT_EQ(process_.reads().size(), 0u);
  EXPECT_EQ(modules_.built(), 0u);
  const Address pc = module.start + 2 * UnwindModules::kChunkBytes + 17;
  EXPECT_TRUE(modules_.Build(pc));
  EXPECT_FALSE(modules_.Build(pc + 1)) << "the same chunk";
  EXPECT_EQ(modules_.built(), 1u);
  EXPECT_LT(modules_.statistics().fdes, large.functions() / 2);
  const std::size_t one = modules_.Snapshot()->memory_bytes();
  EXPECT_TRUE(modules_.Build(module.start));
  EXPECT_GT(modules_.Snapshot()->memory_bytes(), one);
}

// Whether a walk would have to wait for something there.
bool IsPending(const UnwindModules& snapshot, Address pc) {
  const UnwindModules::Entry* entry = snapshot.Find(pc);
  return entry == nullptr ? !snapshot.is_complete() : entry->table == nullptr;
}

TEST_F(CfiModulesTest, WhereverItIsBuiltNothingIsPending) {
  LargeModule large(8);
  const Module module = large.Map(process_, true);
  Module bare = module;
  bare.start = module.limit + UnwindModules::kChunkBytes / 2;
  bare.limit = bare.start + 0x1000;
  bare.unwind_address = 0;
  modules_.Update(ModuleMap({module, bare}));
  EXPECT_FALSE(IsPending(*modules_.Snapshot(), bare.start)) << "no more will be known of it";
  for (const Address pc :
       {module.start, module.limit - 1, module.start - 1, module.limit, bare.start - 1, bare.limit,
        Address{4096}, ~Address{0} - 1, Address{1} << 40}) {
    EXPECT_TRUE(IsPending(*modules_.Snapshot(), pc)) << std::hex << pc;
    EXPECT_TRUE(modules_.Build(pc)) << std::hex << pc;
    EXPECT_FALSE(IsPending(*modules_.Snapshot(), pc)) << std::hex << pc;
    EXPECT_FALSE(modules_.Build(pc)) << std::hex << pc;
  }
  const Address middle = module.start + UnwindModules::kChunkBytes;
  EXPECT_TRUE(IsPending(*modules_.Snapshot(), middle))
      << "what is said of other code says nothing of this";
  EXPECT_TRUE(modules_.Build(~Address{0}));
  EXPECT_FALSE(IsPending(*modules_.Snapshot(), ~Address{0}));
  modules_.Update(ModuleMap({module, bare}));
  EXPECT_FALSE(IsPending(*modules_.Snapshot(), Address{1} << 40)) << "nothing has come there";
  EXPECT_FALSE(IsPending(*modules_.Snapshot(), module.start));
  Module there = module;
  there.start = Address{1} << 40;
  there.limit = there.start + 0x1000;
  modules_.Update(ModuleMap({module, bare, there}));
  EXPECT_TRUE(IsPending(*modules_.Snapshot(), there.start));
  modules_.BuildAll();
  EXPECT_FALSE(IsPending(*modules_.Snapshot(), middle));
  EXPECT_FALSE(IsPending(*modules_.Snapshot(), Address{1} << 40));
}

TEST_F(CfiModulesTest, CodeOutsideOfAllModulesIsRememberedUpToALimit) {
  const Module a = MapModule(process_, 0, 2);
  modules_.Update(ModuleMap({a}));
  for (Address i = 0; i < internal::CfiModules::kMaxUnknownRanges; ++i) {
    EXPECT_FALSE(modules_.Snapshot()->is_complete());
    EXPECT_TRUE(modules_.Build((Address{1} << 40) + i * UnwindModules::kChunkBytes));
  }
  EXPECT_FALSE(IsPending(*modules_.Snapshot(), Address{1} << 41)) << "unknown like the rest";
  EXPECT_FALSE(modules_.Build(Address{1} << 41));
  EXPECT_TRUE(IsPending(*modules_.Snapshot(), a.start));
  EXPECT_TRUE(modules_.Build(a.start));
}

TEST_F(CfiModulesTest, AModuleWithoutFrameInformationIsForgottenWhenItHasGone) {
  Module bare;
  std::size_t memory_bytes = 0;
  for (Address i = 0; i < 2 * internal::CfiModules::kMaxUnknownRanges; ++i) {
    bare.start = (Address{1} << 40) + i * 0x10000;
    bare.limit = bare.start + 0x1000;
    modules_.Update(ModuleMap({bare}));
    ASSERT_FALSE(IsPending(*modules_.Snapshot(), bare.start));
    if (i == 0) memory_bytes = modules_.Snapshot()->memory_bytes();
  }
  EXPECT_EQ(modules_.Snapshot()->memory_bytes(), memory_bytes);
  EXPECT_FALSE(modules_.Snapshot()->is_complete());
  EXPECT_TRUE(modules_.Build(Address{1} << 40));
}

// An entry of a .debug_frame.
Bytes DebugEntry(std::uint32_t id, const Bytes& body) {
  return Join({Fixed(static_cast<std::uint32_t>(sizeof(id) + body.size())), Fixed(id), body});
}
// A CIE of version 4, and FDEs of functions of 256 bytes with a CFA of so many words.
Bytes DebugFrame(const std::vector<std::pair<Address, std::uint32_t>>& functions) {
  Bytes bytes = DebugEntry(
      0xFFFFFFFF,
      Join({{4, 0, 8, 0}, Uleb(1), Sleb(-8), Uleb(kRip), DefCfa(kRsp, 8), Offset(kRip, 1)}));
  for (const auto& [begin, words] : functions) {
    bytes =
        Join({bytes,
              DebugEntry(0, Join({Fixed(begin), Fixed(Address{0x100}), DefCfaOffset(words * 8)}))});
  }
  return bytes;
}

TEST_F(CfiModulesTest, OfFunctionsWithoutEhFrameTheFilesDebugFrameSpeaks) {
  constexpr Address kBias = 0x10000000;
  const Module module = MapModule(process_, kBias, 2);
  constexpr Address kOther = kText + 0x200;
  Bytes debug_frame = DebugFrame({{kText, 5}, {kOther, 7}});
  const auto snapshot_of = [&] {
    internal::CfiModules modules(Architecture::kX86_64, std::ref(process_),
                                 [&](const Module& /*of*/) { return debug_frame; });
    modules.Update(ModuleMap({module}));
    EXPECT_TRUE(modules.Build(module.start));
    return modules.Snapshot();
  };
  EXPECT_EQ(RuleAt(*snapshot_of(), kOther + kBias), FromSp(7));
  EXPECT_EQ(RuleAt(*snapshot_of(), kText + kBias), FromSp(2)) << "what is loaded comes first";
  // Whatever stands in the file.
  const Bytes good = debug_frame;
  std::mt19937_64 random(1);
  for (int round = 0; round < 500; ++round) {
    debug_frame = good;
    for (int i = 0; i < 3; ++i)
      debug_frame[random() % debug_frame.size()] =
          static_cast<std::uint8_t>(random() % 4 == 0 ? 0xFF : random());
    debug_frame.resize(random() % 4 == 0 ? random() % debug_frame.size() : debug_frame.size());
    EXPECT_EQ(RuleAt(*snapshot_of(), kText + kBias), FromSp(2));
  }
}

TEST_F(CfiModulesTest, TheIndexIsLetGoWhenAllIsBuilt) {
  LargeModule large(9);
  const Module module = large.Map(process_, true);
  modules_.Update(ModuleMap({module}));
  modules_.Build(module.start);
  const std::size_t with_index = modules_.memory_bytes();
  modules_.BuildAll();
  EXPECT_LE(modules_.memory_bytes() + large.functions() * 8, with_index);
}

TEST_F(CfiModulesTest, WhatCouldNotBeReadIsReadAgainWhenTheModulesHaveChanged) {
  Module a = MapModule(process_, 0, 2);
  FakeMemory empty;
  std::swap(empty, process_);  // as if it were just being unloaded
  EXPECT_EQ(RuleAt(*UpdateAll(ModuleMap({a})), a.start), UnwindRule::Unknown());
  EXPECT_EQ(modules_.unread(), a.path);
  std::swap(empty, process_);
  EXPECT_EQ(RuleAt(*UpdateAll(ModuleMap({a})), a.start), FromSp(2));
  EXPECT_EQ(modules_.unread(), "");
}

TEST_F(CfiModulesTest, AnIndexThatLiesIsNoHarm) {
  LargeModule large(10);
  const Module module = large.Map(process_, true);
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    FakeMemory hostile;
    Bytes index = {1, 0x1B, 0x03, 0x3B};
    index = Join({index, Fixed(std::int32_t{100}),
                  Fixed(static_cast<std::uint32_t>(round % 2 == 0 ? 60 : 0xFFFFFFFF))});
    for (int i = 0; i < 500; ++i) index.push_back(static_cast<std::uint8_t>(random()));
    for (std::size_t i = 15; i < index.size(); i += 4) index[i] = random() % 2 == 0 ? 0 : 0xF0;
    process_.Map(module.unwind_address, index);
    UpdateAll(ModuleMap(std::vector<Module>()));
    const auto snapshot = UpdateAll(ModuleMap({module}));
    for (Address pc = module.start; pc < module.limit; pc += 999)
      static_cast<void>(RuleAt(*snapshot, pc));
  }
}

// A Windows image: functions that push registers, each KiB of its text one, and a leaf behind each.
TEST_F(CfiModulesTest, WindowsImagesAreReadByTheirOwnFrameInformation) {
  constexpr Address kBase = 0x180000000;
  constexpr std::uint32_t kTextRva = 0x1000;
  constexpr std::uint32_t kFunctionBytes = 1024;
  constexpr std::uint32_t kFunctions = 2 * UnwindModules::kChunkBytes / kFunctionBytes + 3;
  constexpr std::uint32_t kPdataRva = kTextRva + kFunctions * kFunctionBytes;
  Bytes pdata;
  Bytes xdata;
  for (std::uint32_t i = 0; i < kFunctions; ++i) {
    const std::uint32_t begin = kTextRva + i * kFunctionBytes;
    const auto info = static_cast<std::uint32_t>(kPdataRva + kFunctions * 12 + xdata.size());
    pdata = Join({pdata, Fixed(begin), Fixed(begin + kFunctionBytes / 2), Fixed(info)});
    // sub rsp, 8 * (1 + i % 16)
    xdata = Join({xdata, {1, 4, 1, 0, 4, static_cast<std::uint8_t>(2 | (i % 16) << 4), 0, 0}});
  }
  process_.Map(kBase, Join({Bytes(kPdataRva, 0x90), pdata, xdata}));
  Module module{.start = kBase + kTextRva,
                .limit = kBase + kPdataRva,
                .load_bias = kBase,
                .path = "C:\\large.dll",
                .build_id = "",
                .format = ImageFormat::kPe,
                .pdata_address = kBase + kPdataRva,
                .pdata_bytes = static_cast<std::uint32_t>(pdata.size())};
  modules_.Update(ModuleMap({module}));
  EXPECT_TRUE(modules_.Build(module.start + UnwindModules::kChunkBytes));
  EXPECT_LE(modules_.statistics().fdes, UnwindModules::kChunkBytes / kFunctionBytes) << "one chunk";
  EXPECT_LE(process_.reads().size(), 4u) << "the code, and a window or two of frame information";
  const auto snapshot = UpdateAll(ModuleMap({module}));
  for (std::uint32_t i = 0; i < kFunctions; ++i) {
    const Address begin = module.start + Address{i} * kFunctionBytes;
    ASSERT_EQ(RuleAt(*snapshot, begin), FromSp(1)) << i;
    ASSERT_EQ(RuleAt(*snapshot, begin + 4), FromSp(2 + i % 16)) << i;
    ASSERT_EQ(RuleAt(*snapshot, begin + kFunctionBytes / 2), FromSp(1)) << i;
  }
  EXPECT_EQ(modules_.statistics().fdes, kFunctions);
  EXPECT_EQ(modules_.statistics().broken_entries, 0u);
}

}  // namespace
}  // namespace strobe::testing
