#include "../../../src/cli/perf/perf_frames.h"

#include <cstdint>
#include <memory>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::SizeIs;

ProcessModule ModuleAt(Address start, std::uint64_t image, const std::string& path) {
  return {.module = {.start = start, .limit = start + 0x1000, .path = path, .build_id = ""},
          .image_number = image};
}

class PerfFramesTest : public ::testing::Test {
 protected:
  [[nodiscard]] const Frame& FrameAt(std::uint32_t number) {
    return builder_.profile().frames[number];
  }
  [[nodiscard]] std::string NameOf(std::uint32_t number) {
    const std::uint32_t function = builder_.symbols().frames[number].function;
    return function == FrameSymbols::kNone ? "" : builder_.symbols().functions[function].name;
  }

  ProfileBuilder builder_;
  PerfFrames frames_{builder_};
};

TEST_F(PerfFramesTest, AFileAtSeveralAddressesIsOneModule) {
  const ProcessModule first = ModuleAt(0x10000, 7, "/lib/a");
  const ProcessModule second = ModuleAt(0x50000, 7, "/container/lib/a");
  const std::uint32_t frame = frames_.User(0x10010, &first);
  frames_.BeginStack();
  EXPECT_EQ(frames_.User(0x50010, &second), frame);
  EXPECT_EQ(FrameAt(frame), (Frame{0x10010, 0})) << "with the addresses of the first process";
  EXPECT_THAT(builder_.profile().modules, SizeIs(1));
}

TEST_F(PerfFramesTest, OtherPartsOfAFileAndOtherFilesAreOtherModules) {
  const ProcessModule first = ModuleAt(0x10000, 7, "/lib/a");
  ProcessModule part = ModuleAt(0x20000, 7, "/lib/a");
  part.module.file_offset = 0x3000;
  const ProcessModule other = ModuleAt(0x30000, 8, "/lib/a");
  EXPECT_EQ(FrameAt(frames_.User(0x10010, &first)).module, 0u);
  EXPECT_EQ(FrameAt(frames_.User(0x20010, &part)).module, 1u);
  EXPECT_EQ(FrameAt(frames_.User(0x30010, &other)).module, 2u);
}

TEST_F(PerfFramesTest, WithoutAFileAddressesTellModulesApart) {
  const ProcessModule first = ModuleAt(0x10000, 0, "//anon");
  const ProcessModule second = ModuleAt(0x20000, 0, "//anon");
  const ProcessModule again = ModuleAt(0x10000, 0, "//anon");
  EXPECT_EQ(FrameAt(frames_.User(0x10010, &first)), (Frame{0x10010, 0}));
  EXPECT_EQ(FrameAt(frames_.User(0x20010, &second)), (Frame{0x20010, 1}));
  EXPECT_EQ(FrameAt(frames_.User(0x10010, &again)), (Frame{0x10010, 0}));
}

TEST_F(PerfFramesTest, CodeInNoModuleHasItsAddress) {
  const std::uint32_t frame = frames_.User(0x1234, nullptr);
  EXPECT_EQ(FrameAt(frame), (Frame{0x1234, Frame::kNoModule}));
  EXPECT_EQ(NameOf(frame), "");
}

TEST_F(PerfFramesTest, GeneratedCodeMayBeReplacedAtTheSameAddress) {
  const ProcessModule anon = ModuleAt(0x10000, 0, "//anon");
  const std::uint32_t before = frames_.Generated(0x10010, &anon, "before");
  const std::uint32_t after = frames_.Generated(0x10010, &anon, "after");
  EXPECT_NE(after, before);
  EXPECT_EQ(frames_.Generated(0x10010, &anon, "before"), before);
  EXPECT_EQ(NameOf(before), "before");
  EXPECT_EQ(NameOf(after), "after");
  EXPECT_EQ(FrameAt(frames_.Generated(0x20000, nullptr, "before")).module, Frame::kNoModule);
  EXPECT_THAT(builder_.symbols().functions, SizeIs(2));
}

TEST_F(PerfFramesTest, WhatIsNamedLaterIsAFrameForEachProcess) {
  const auto later = [&](std::uint32_t process, Address address) {
    return frames_.NamedLater({.process = process, .address = address}, nullptr, 5);
  };
  const std::uint32_t frame = later(1, 0x10010);
  EXPECT_EQ(later(1, 0x10010), frame);
  EXPECT_NE(later(1, 0x10011), frame);
  const std::uint32_t other = later(2, 0x10010);
  EXPECT_NE(other, frame);
  EXPECT_EQ(FrameAt(other), FrameAt(frame));
  EXPECT_TRUE(frames_.NameLater([](const PerfFrames::Unnamed& code) {
    return code.address != 0x10010 ? "" : code.process == 1 ? "one" : "two";
  }));
  EXPECT_EQ(NameOf(frame), "one");
  EXPECT_EQ(NameOf(other), "two");
  EXPECT_EQ(NameOf(later(1, 0x10011)), "");
}

TEST_F(PerfFramesTest, WhatADumpNamesIsNotMixedOverTime) {
  constexpr std::uint64_t kMillisecond = 1'000'000;
  const PerfFrames::Unnamed code{.process = 1, .dump = 0, .address = 0x10010};
  const std::uint32_t first = frames_.NamedLater(code, nullptr, 1000 * kMillisecond);
  EXPECT_EQ(frames_.NamedLater(code, nullptr, 1010 * kMillisecond), first);
  const std::uint32_t second = frames_.NamedLater(code, nullptr, 2000 * kMillisecond);
  EXPECT_NE(second, first);
  frames_.NameLater([&](const PerfFrames::Unnamed& asked) {
    EXPECT_EQ(asked.dump, 0u);
    const bool is_first = asked.times.first == 1000 * kMillisecond;
    EXPECT_EQ(asked.times.last, (is_first ? 1010 : 2000) * kMillisecond);
    return is_first ? "old" : "new";
  });
  EXPECT_EQ(NameOf(first), "old");
  EXPECT_EQ(NameOf(second), "new");
}

TEST_F(PerfFramesTest, WithoutSymbolsAllOfTheKernelIsOneFrame) {
  const std::uint32_t frame = frames_.Kernel(0xFFFFFFFF81000010);
  EXPECT_EQ(frames_.Kernel(0xFFFFFFFF81000020), frame);
  EXPECT_EQ(NameOf(frame), "[kernel]");
  EXPECT_EQ(FrameAt(frame), (Frame{0, Frame::kNoModule}));
}

TEST_F(PerfFramesTest, WithSymbolsTheKernelIsAModuleOfItsFunctions) {
  frames_.UseKernelSymbols(
      std::make_shared<const KernelSymbols>("ffffffff81000000 T first\nffffffff81000100 T second"));
  const std::uint32_t second = frames_.Kernel(0xFFFFFFFF81000110);
  const std::uint32_t first = frames_.Kernel(0xFFFFFFFF81000010);
  EXPECT_EQ(NameOf(first), "first");
  EXPECT_EQ(NameOf(second), "second");
  EXPECT_EQ(NameOf(frames_.Kernel(0xFFFFFFFF80000000)), "[kernel]") << "before the first";
  const Module& module = builder_.profile().modules[0];
  EXPECT_EQ(module.path, "[kernel]");
  EXPECT_EQ(module.start, 0xFFFFFFFF81000010);
  EXPECT_EQ(module.limit, 0xFFFFFFFF81000111);
  EXPECT_EQ(module.kind, ModuleKind::kGeneratedCode);
}

TEST_F(PerfFramesTest, TheKernelIsNotTheFirstModule) {
  frames_.UseKernelSymbols(std::make_shared<const KernelSymbols>("ffffffff81000000 T first"));
  const std::uint32_t kernel = frames_.Kernel(0xFFFFFFFF81000010);
  const ProcessModule program = ModuleAt(0x10000, 7, "/bin/program");
  const std::uint32_t user = frames_.User(0x10010, &program);
  const std::uint32_t pseudo = frames_.Pseudo(PseudoFrame::kLost);
  frames_.Finish();
  EXPECT_EQ(builder_.profile().modules[0].path, "/bin/program");
  EXPECT_EQ(FrameAt(user).module, 0u);
  EXPECT_EQ(FrameAt(kernel).module, 1u);
  EXPECT_TRUE(FrameAt(pseudo).is_pseudo());
  EXPECT_EQ(FrameAt(pseudo).address, static_cast<Address>(PseudoFrame::kLost));
}

TEST_F(PerfFramesTest, TheProgramIsAFileThatIsSaidToBeIt) {
  const ProcessModule program = ModuleAt(0x10000, 7, "/bin/program");
  frames_.UseProgram(program);
  ASSERT_THAT(builder_.profile().modules, SizeIs(1));
  EXPECT_EQ(builder_.profile().modules[0].kind, ModuleKind::kProgram);
  EXPECT_EQ(FrameAt(frames_.User(0x10010, &program)), (Frame{0x10010, 0}));
}

}  // namespace
}  // namespace strobe::internal
