#include "strobe/process/process_table.h"

#include <array>
#include <thread>
#include <vector>

#include "fake_image.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::testing {
namespace {

using ::testing::ElementsAre;

constexpr Address kBase = 0x7F0000000000;
constexpr std::uint64_t kProcess = 42;

// A mapping of a FakeImage's code at `start`.
Mapping MapAt(Address start, const std::string& path, std::string build_id = "") {
  return {start, start + 0x1000, FakeImage::kOffset, path, std::move(build_id)};
}

X86_64Registers RegistersAt(Address start) { return {.pc = start + 0x50, .sp = 0x7000}; }

class ProcessTableTest : public ::testing::Test {
 protected:
  // Unwinds a stack of frames of two words, whose return addresses are in the code at `start`.
  WalkResult Unwind(ProcessTable& table, std::uint64_t process, Address start,
                    std::size_t copied_words = 8, Address fp = 0) {
    words_ = {0, start + 0x101, 0, start + 0x201, 0, start + 0x301, 0, 0};
    const WalkResult walk =
        table.Unwind(process,
                     {.registers = X86_64Registers{.pc = start + 0x50, .sp = 0x7000, .fp = fp},
                      .stack = std::as_bytes(std::span(words_).first(copied_words))},
                     frames_);
    found_.assign(frames_.begin(), frames_.begin() + static_cast<std::ptrdiff_t>(walk.count));
    return walk;
  }
  auto FramesAt(Address start) {
    return ElementsAre(start + 0x50, start + 0x100, start + 0x200, start + 0x300);
  }

  FakeFiles files_;
  std::array<Address, 8> words_{};
  std::array<Address, 64> frames_{};
  std::vector<Address> found_;
};

TEST_F(ProcessTableTest, UnwindsByTheFrameInformationOfTheFile) {
  files_.Write("/lib/a", {});
  ProcessTable table(files_);
  table.Map(kProcess, MapAt(kBase, "/lib/a"));
  EXPECT_EQ(Unwind(table, kProcess, kBase).end, StackEnd::kComplete);
  EXPECT_THAT(found_, FramesAt(kBase));
  const auto code = table.Find(kProcess);
  ASSERT_NE(code, nullptr);
  const ProcessModule* module = code->Find(kBase + 0x100);
  ASSERT_NE(module, nullptr);
  EXPECT_EQ(module->module.path, "/lib/a");
  EXPECT_EQ(module->module.load_bias, kBase - FakeImage::kText);
  EXPECT_EQ(code->Find(kBase + 0x1000), nullptr);
}

// The leaf has not saved its link register; addresses may be signed.
TEST_F(ProcessTableTest, UnwindsAarch64OnAnyHost) {
  files_.Write("/lib/arm", {.machine = FakeImage::kAarch64});
  ProcessTable table(files_);
  table.Map(kProcess, MapAt(kBase, "/lib/arm"));
  const std::array<Address, 6> words{
      0x7020, (kBase + 0x104) | Address{0x55} << 48, 0, kBase + 0x204, 0, 0};
  const Aarch64Registers registers{.pc = kBase + 0x50, .sp = 0x7000, .fp = 0x7010};
  const auto unwind = [&](std::size_t copied_words) {
    const auto stack = std::as_bytes(std::span(words).first(copied_words));
    const WalkResult walk = table.Unwind(kProcess, {registers, stack}, frames_);
    found_.assign(frames_.begin(), frames_.begin() + static_cast<std::ptrdiff_t>(walk.count));
    return walk.end;
  };
  EXPECT_EQ(unwind(6), StackEnd::kComplete);
  EXPECT_THAT(found_, ElementsAre(kBase + 0x50, kBase + 0x103, kBase + 0x203));
  EXPECT_EQ(unwind(2), StackEnd::kTruncated);
  EXPECT_THAT(found_, ElementsAre(kBase + 0x50, kBase + 0x103));
  EXPECT_EQ(table.stats().refused_walks, 0u);
}

// A process whose first image is for one CPU has no code for another.
TEST_F(ProcessTableTest, CodeOfOneCpuIsNeverUnwoundAsThatOfAnother) {
  files_.Write("/lib/arm", {.machine = FakeImage::kAarch64});
  files_.Write("/lib/intel", {});
  ProcessTable table(files_);
  table.Map(kProcess, MapAt(kBase, "/lib/arm"));
  table.Map(kProcess, MapAt(kBase + 0x10000, "/lib/intel"));
  EXPECT_EQ(table.Find(kProcess)->Find(kBase + 0x10000)->image_number, 0u);
  EXPECT_EQ(Unwind(table, kProcess, kBase).end, StackEnd::kNoUnwindInfo);
  EXPECT_THAT(found_, ElementsAre(kBase + 0x50));
  EXPECT_EQ(table.stats().refused_walks, 1u);
  table.Exec(kProcess);
  table.Map(kProcess, MapAt(kBase, "/lib/intel"));
  EXPECT_EQ(Unwind(table, kProcess, kBase).end, StackEnd::kComplete) << "it is another program now";
  EXPECT_EQ(table.stats().refused_walks, 1u);
}

// Its vdso is not that of this process, which is a 64-bit one.
TEST_F(ProcessTableTest, A32BitProcessHasNoImages) {
  files_.Write("/bin/small", {.machine = 3});
  ProcessTable table(files_);
  table.Map(kProcess, MapAt(0x8048000, "/bin/small"));
  table.Map(kProcess, {0xF7FC8000, 0xF7FCA000, 0, "[vdso]"});
  EXPECT_EQ(table.Find(kProcess)->Find(0xF7FC9000)->image_number, 0u);
  for (const Address start : {Address{0x8048000}, Address{0xF7FC8000}}) {
    // The frame pointer would lead on.
    EXPECT_EQ(Unwind(table, kProcess, start, 8, 0x7010).end, StackEnd::kNoUnwindInfo);
    EXPECT_THAT(found_, ElementsAre(start + 0x50));
  }
}

TEST_F(ProcessTableTest, MarksAStackThatIsDeeperThanItsCopy) {
  files_.Write("/lib/a", {});
  ProcessTable table(files_);
  table.Map(kProcess, MapAt(kBase, "/lib/a"));
  EXPECT_EQ(Unwind(table, kProcess, kBase, 5).end, StackEnd::kTruncated);
  EXPECT_THAT(found_, ElementsAre(kBase + 0x50, kBase + 0x100, kBase + 0x200));
  EXPECT_EQ(table.stats().truncated_walks, 1u);
}

TEST_F(ProcessTableTest, AFileIsCompiledOnceForAllProcesses) {
  files_.Write("/lib/a", {.build_id = 0x11});
  files_.Write("/container/lib/a", {.build_id = 0x11});
  ProcessTable table(files_);
  table.Map(1, MapAt(kBase, "/lib/a"));
  Unwind(table, 1, kBase);
  const std::size_t bytes = table.stats().table_bytes;
  EXPECT_GT(bytes, 0u);
  const std::uint64_t reads = files_.reads();
  for (std::uint64_t process = 2; process < 100; ++process) {
    const Address start = kBase + process * 0x10000;
    table.Map(process, MapAt(start, "/lib/a"));
    EXPECT_EQ(Unwind(table, process, start).end, StackEnd::kComplete);
    EXPECT_THAT(found_, FramesAt(start));
  }
  EXPECT_EQ(files_.reads(), reads) << "nothing of the file is read again";
  table.Map(100, MapAt(kBase, "/container/lib/a"));
  Unwind(table, 100, kBase);
  EXPECT_EQ(table.stats().images, 1u) << "the build id is the same";
  EXPECT_EQ(table.stats().table_bytes, bytes);
  EXPECT_EQ(table.Find(1)->Find(kBase)->image_number, table.Find(100)->Find(kBase)->image_number);
}

TEST_F(ProcessTableTest, ForkedProcessesHaveTheirParentsCodeUntilTheyExecute) {
  files_.Write("/lib/a", {});
  ProcessTable table(files_);
  table.Map(1, MapAt(kBase, "/lib/a"));
  table.SetName(1, "parent");
  table.Fork(1, 2);
  table.Fork(2, 2);  // a thread
  EXPECT_EQ(table.Name(2), "parent");
  EXPECT_EQ(Unwind(table, 2, kBase).end, StackEnd::kComplete);
  EXPECT_THAT(found_, FramesAt(kBase));
  table.Exec(2);
  table.SetName(2, "child");
  EXPECT_TRUE(table.Find(2)->modules().empty());
  EXPECT_EQ(table.Name(2), "child");
  EXPECT_EQ(Unwind(table, 1, kBase).end, StackEnd::kComplete) << "the parent stays as it is";
}

TEST_F(ProcessTableTest, AProcessThatHasEndedIsUnknown) {
  files_.Write("/lib/a", {});
  ProcessTable table(files_);
  table.Map(kProcess, MapAt(kBase, "/lib/a"));
  table.Exit(kProcess);
  EXPECT_EQ(table.Find(kProcess), nullptr);
  EXPECT_EQ(Unwind(table, kProcess, kBase).end, StackEnd::kNoUnwindInfo);
  EXPECT_THAT(found_, ElementsAre(kBase + 0x50));
  EXPECT_EQ(table.stats().unknown_processes, 1u);
  EXPECT_EQ(table.stats().processes, 0u);
}

TEST_F(ProcessTableTest, NewCodeTakesThePlaceOfOld) {
  files_.Write("/lib/a", {});
  files_.Write("/lib/b", {.words = 4});
  ProcessTable table(files_);
  table.Map(kProcess, MapAt(kBase, "/lib/a"));
  Unwind(table, kProcess, kBase);
  table.Map(kProcess, MapAt(kBase, "/lib/b"));
  Unwind(table, kProcess, kBase);
  EXPECT_THAT(found_, ElementsAre(kBase + 0x50, kBase + 0x200)) << "frames are four words long";
  EXPECT_EQ(table.Find(kProcess)->modules().size(), 1u);
}

TEST_F(ProcessTableTest, WhatIsLeftOfAModuleStays) {
  files_.Write("/lib/a", {.text_bytes = 0x3000});
  ProcessTable table(files_);
  table.Map(kProcess, {kBase, kBase + 0x3000, FakeImage::kOffset, "/lib/a"});
  table.Map(kProcess, {kBase + 0x1000, kBase + 0x2000, 0, "//anon"});
  const auto code = table.Find(kProcess);
  ASSERT_EQ(code->modules().size(), 3u);
  EXPECT_EQ(code->Find(kBase + 0x1800)->module.kind, ModuleKind::kGeneratedCode);
  const Module& rest = code->Find(kBase + 0x2800)->module;
  EXPECT_EQ(rest.file_offset, FakeImage::kOffset + 0x2000);
  EXPECT_EQ(rest.load_bias, kBase - FakeImage::kText);
  EXPECT_EQ(Unwind(table, kProcess, kBase).end, StackEnd::kComplete);
}

TEST_F(ProcessTableTest, AFileThatWasWrittenAnewIsAnotherFile) {
  files_.Write("/lib/a", {});
  ProcessTable table(files_);
  table.Map(1, MapAt(kBase, "/lib/a"));
  files_.Write("/lib/a", {.words = 4});
  table.Map(2, MapAt(kBase, "/lib/a"));
  Unwind(table, 1, kBase);
  EXPECT_THAT(found_, FramesAt(kBase)) << "the old file is open still";
  Unwind(table, 2, kBase);
  EXPECT_THAT(found_, ElementsAre(kBase + 0x50, kBase + 0x200));
}

TEST_F(ProcessTableTest, WithoutItsFileCodeIsNotGuessedAt) {
  files_.Write("/lib/a", {.build_id = 0x11});
  ProcessTable table(files_);
  table.Map(kProcess, MapAt(kBase, "/lib/a", "2222"));
  table.Map(kProcess, MapAt(kBase + 0x10000, "/lib/missing"));
  for (const Address start : {kBase, kBase + 0x10000}) {
    // The frame pointer would lead on.
    EXPECT_EQ(Unwind(table, kProcess, start, 8, 0x7010).end, StackEnd::kNoUnwindInfo);
    EXPECT_THAT(found_, ElementsAre(start + 0x50));
  }
  EXPECT_EQ(table.stats().missing_images, 2u);
}

TEST_F(ProcessTableTest, CodeWithoutAFileIsUnwoundByFramePointers) {
  ProcessTable table(files_);
  table.Map(kProcess, MapAt(kBase, "//anon"));
  Unwind(table, kProcess, kBase, 8, 0x7010);
  EXPECT_THAT(found_, ElementsAre(kBase + 0x50, kBase + 0x200));
}

TEST_F(ProcessTableTest, ProcessesAreLetGoByUse) {
  ProcessTable table(files_, {.max_processes = 2});
  table.SetName(1, "one");
  table.SetName(2, "two");
  table.SetName(1, "one again");
  table.SetName(3, "three");
  EXPECT_EQ(table.Name(1), "one again");
  EXPECT_EQ(table.Name(2), "");
  EXPECT_EQ(table.Name(3), "three");
  EXPECT_EQ(table.stats().evicted_processes, 1u);
}

TEST_F(ProcessTableTest, ModulesAndImagesAreBounded) {
  for (int i = 0; i < 8; ++i) files_.Write("/lib/" + std::to_string(i), {});
  ProcessTable table(files_, {.max_modules = 4, .max_images = 2});
  for (std::uint64_t i = 0; i < 8; ++i)
    table.Map(kProcess, MapAt(kBase + i * 0x10000, "/lib/" + std::to_string(i)));
  EXPECT_EQ(table.Find(kProcess)->modules().size(), 4u);
  EXPECT_EQ(table.stats().images, 2u);
  EXPECT_EQ(table.stats().refused_modules, 4u);
  table.Exit(kProcess);
  table.Map(2, MapAt(kBase, "/lib/7"));
  EXPECT_EQ(Unwind(table, 2, kBase).end, StackEnd::kComplete) << "an image that is not used went";
}

TEST_F(ProcessTableTest, TablesMakeRoomForOthersByUse) {
  for (int i = 0; i < 8; ++i) files_.Write("/lib/" + std::to_string(i), {});
  std::size_t one = 0;
  {
    ProcessTable table(files_);
    table.Map(kProcess, MapAt(kBase, "/lib/0"));
    Unwind(table, kProcess, kBase);
    one = table.stats().table_bytes;
  }
  ProcessTable table(files_, {.max_table_bytes = 3 * one});
  for (int round = 0; round < 3; ++round) {
    for (std::uint64_t i = 0; i < 8; ++i) {
      const Address start = kBase + i * 0x10000;
      table.Map(i, MapAt(start, "/lib/" + std::to_string(i)));
      EXPECT_EQ(Unwind(table, i, start).end, StackEnd::kComplete);
      EXPECT_THAT(found_, FramesAt(start));
      EXPECT_LE(table.stats().table_bytes, 3 * one);
    }
  }
  EXPECT_EQ(table.stats().evicted_tables, 3u * 8u - 3u);

  ProcessTable small(files_, {.max_table_bytes = one / 2});
  small.Map(kProcess, MapAt(kBase, "/lib/0"));
  EXPECT_EQ(Unwind(small, kProcess, kBase).end, StackEnd::kNoUnwindInfo);
  EXPECT_THAT(found_, ElementsAre(kBase + 0x50));
  EXPECT_EQ(small.stats().refused_tables, 1u);
  EXPECT_EQ(small.stats().table_bytes, 0u);
}

TEST_F(ProcessTableTest, OnlyBusyProcessesHaveACache) {
  files_.Write("/lib/a", {});
  files_.Write("/lib/b", {.words = 4});
  ProcessTable table(files_);
  for (std::uint64_t process = 1; process <= 100; ++process) {
    table.Map(process, MapAt(kBase, process % 2 == 0 ? "/lib/a" : "/lib/b"));
  }
  for (int i = 0; i < 4096; ++i) Unwind(table, 1 + static_cast<std::uint64_t>(i) % 100, kBase);
  EXPECT_EQ(table.stats().caches, 0u) << "each has a hundredth";
  for (int i = 0; i < 4096; ++i) Unwind(table, 1 + static_cast<std::uint64_t>(i) % 2, kBase);
  EXPECT_EQ(table.stats().caches, 2u);
  // The cache goes with what it was of.
  Unwind(table, 2, kBase);
  EXPECT_THAT(found_, FramesAt(kBase));
  table.Fork(2, 200);
  table.Map(2, MapAt(kBase, "/lib/b"));
  Unwind(table, 2, kBase);
  EXPECT_THAT(found_, ElementsAre(kBase + 0x50, kBase + 0x200));
  Unwind(table, 200, kBase);
  EXPECT_THAT(found_, FramesAt(kBase));
  table.Exec(2);
  table.Map(2, MapAt(kBase, "/lib/a"));
  Unwind(table, 2, kBase);
  EXPECT_THAT(found_, FramesAt(kBase));
  for (int i = 0; i < 4096; ++i) Unwind(table, 3, kBase);
  EXPECT_EQ(table.stats().caches, 1u);
}

TEST_F(ProcessTableTest, ThreadsMayShareIt) {
  for (int i = 0; i < 4; ++i) files_.Write("/lib/" + std::to_string(i), {});
  ProcessTable table(files_, {.max_table_bytes = 1});  // drops every table at once
  ProcessTable roomy(files_);
  std::atomic<int> wrong = 0;
  std::vector<std::thread> threads;
  for (std::uint64_t number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      const Address start = kBase + number * 0x10000;
      const Mapping mapping = MapAt(start, "/lib/" + std::to_string(number));
      const std::array<Address, 4> words{0, start + 0x101, 0, 0};
      std::array<Address, 8> frames{};
      for (int i = 0; i < 200; ++i) {
        for (ProcessTable* each : {&table, &roomy}) {
          each->Map(number, mapping);
          each->Fork(number, number + 10);
          const WalkResult walk = each->Unwind(
              number + 10,
              {.registers = RegistersAt(start), .stack = std::as_bytes(std::span(words))}, frames);
          if (each == &roomy && (walk.count != 2 || frames[1] != start + 0x100)) ++wrong;
          each->Exit(number + 10);
        }
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(roomy.stats().images, 4u);
}

}  // namespace
}  // namespace strobe::testing
