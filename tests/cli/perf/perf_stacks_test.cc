#include "../../../src/cli/perf/perf_stacks.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../perf_bytes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "process/fake_image.h"
#include "strobe/process/perf_registers.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr Address kCode = 0x7F0000000000;
constexpr Address kKernelCode = 0xFFFFFFFF81000000;
constexpr std::uint64_t kToUser = static_cast<std::uint64_t>(-512);
constexpr std::uint64_t kToKernel = static_cast<std::uint64_t>(-128);
constexpr std::uint64_t kToGuest = static_cast<std::uint64_t>(-2048);
constexpr std::uint16_t kInKernel = 1;
constexpr std::uint16_t kInUser = 2;
constexpr std::uint16_t kInGuest = 4;
constexpr std::uint32_t kSampled = 42;

class PerfStacksTest : public ::testing::Test {
 protected:
  PerfStacksTest() {
    stacks_.UseArchitecture(Architecture::kX86_64);
    files_.Write("/bin/program", {});
    table_.Map(kSampled, {kCode, kCode + 0x1000, testing::FakeImage::kOffset, "/bin/program"});
  }

  // The addresses of the frames, leaf first; pseudo-frames by their names.
  std::vector<std::string> Texts(const PerfEvent& event, const PerfSample& sample,
                                 std::uint16_t misc) {
    std::vector<std::string> texts;
    for (const std::uint32_t number : stacks_.Of(event, sample, misc)) {
      const Frame& frame = builder_.profile().frames[number];
      const std::uint32_t function = builder_.symbols().frames[number].function;
      if (function != FrameSymbols::kNone) {
        texts.push_back(builder_.symbols().functions[function].name);
      } else if (frame.is_pseudo()) {
        texts.emplace_back(builder_.profile().PseudoName(frame));
      } else {
        texts.push_back(frame.address >= kCode && frame.address < kCode + 0x1000
                            ? "+" + std::to_string(frame.address - kCode)
                            : std::to_string(frame.address));
      }
    }
    return texts;
  }
  std::vector<std::string> TextsOfChain(const std::vector<std::uint64_t>& chain, std::uint16_t misc,
                                        Address ip = 0) {
    const Bytes words = Words(chain);
    return Texts({.name = ""}, {.ip = ip, .process = kSampled, .callchain = AsBytes(words)}, misc);
  }
  // The sample at code + 16 with that many words of a stack whose frames are two words long.
  std::vector<std::string> TextsOfStack(std::size_t words, std::uint32_t process = kSampled,
                                        const std::vector<std::uint64_t>& chain = {},
                                        std::uint16_t misc = kInUser,
                                        std::uint64_t kind = PerfRegisters::k64Bit) {
    std::vector<std::uint64_t> all = {0, kCode + 0x101, 0, kCode + 0x201, 0, 0, 0, 0};
    all.resize(words);
    const Bytes stack = Words(all);
    const Bytes chain_words = Words(chain);
    const Bytes registers = Join({Words({0, 0, 0, 0, 0, 0, 0, 0x7000, kCode + 16}), Bytes(11 * 8)});
    return Texts({.registers = 0xFF0FFF, .name = ""},
                 {.ip = kCode + 16,
                  .process = process,
                  .callchain = AsBytes(chain_words),
                  .registers_kind = kind,
                  .registers = AsBytes(registers),
                  .stack = AsBytes(stack)},
                 misc);
  }

  testing::FakeFiles files_;
  ProcessTable table_{files_};
  ProfileBuilder builder_;
  PerfStacks stacks_{builder_, table_};
};

TEST_F(PerfStacksTest, UnwindsASampleWithRegistersAndStack) {
  EXPECT_THAT(TextsOfStack(8), ElementsAre("+16", "+256", "+512"));
  EXPECT_THAT(TextsOfStack(8, kSampled, {kToUser, kCode + 1, kCode + 2}),
              ElementsAre("+16", "+256", "+512"))
      << "the call chain counts for less";
}

TEST_F(PerfStacksTest, SaysWhyAStackEnds) {
  EXPECT_THAT(TextsOfStack(3), ElementsAre("+16", "+256", "[truncated]"));
  EXPECT_THAT(TextsOfStack(8, 77), ElementsAre("+16", "[no unwind info]")) << "an unknown process";
}

// Their words are not the 64-bit ones: the instruction is all that is known.
TEST_F(PerfStacksTest, StacksOf32BitCodeEndAtTheInstruction) {
  const auto texts = [&](const std::vector<std::uint64_t>& chain, std::uint16_t misc) {
    return TextsOfStack(8, kSampled, chain, misc, PerfRegisters::k32Bit);
  };
  EXPECT_THAT(texts({}, kInUser), ElementsAre("+16", "[no unwind info]"));
  EXPECT_THAT(texts({kToKernel, kKernelCode}, kInKernel),
              ElementsAre("[kernel]", "[no unwind info]"));
  EXPECT_THAT(texts({kToUser, kCode + 16, kCode + 0x101}, kInUser), ElementsAre("+16", "+256"))
      << "as perf has found it";
  EXPECT_EQ(stacks_.stacks_of_32_bit(), 3u);
  EXPECT_EQ(stacks_.stacks_of_other_cpus(), 0u);
}

// A recording of an aarch64 machine, read here. Its words stand for x0 to x30, sp and pc.
TEST_F(PerfStacksTest, UnwindsSamplesOfAnotherMachine) {
  files_.Write("/bin/arm", {.machine = testing::FakeImage::kAarch64});
  table_.Map(77, {kCode, kCode + 0x1000, testing::FakeImage::kOffset, "/bin/arm"});
  stacks_.UseArchitecture(Architecture::kAarch64);
  const Bytes stack = Words({0, kCode + 0x104, 0, kCode + 0x204, 0, 0});
  const Bytes registers = Join({Bytes(31 * 8), Words({0x7000, kCode + 16})});
  const PerfSample sample{.ip = kCode + 16,
                          .process = 77,
                          .registers_kind = PerfRegisters::k64Bit,
                          .registers = AsBytes(registers),
                          .stack = AsBytes(stack)};
  EXPECT_THAT(Texts({.registers = 0x1FFFFFFFF, .name = ""}, sample, kInUser),
              ElementsAre("+16", "+259", "+515"));
  EXPECT_THAT(Texts({.registers = 0xFF0FFF, .name = ""}, sample, kInUser), ElementsAre("+16"))
      << "a mask that lacks registers";
}

TEST_F(PerfStacksTest, StacksOfAnUnknownCpuEndAtTheInstruction) {
  stacks_.UseArchitecture(std::nullopt);
  EXPECT_THAT(TextsOfStack(8), ElementsAre("+16", "[no unwind info]"));
  EXPECT_EQ(stacks_.stacks_of_other_cpus(), 1u);
  EXPECT_EQ(stacks_.stacks_of_32_bit(), 0u);
}

TEST_F(PerfStacksTest, TheKernelsFramesStandBeforeTheUsers) {
  EXPECT_THAT(TextsOfStack(8, kSampled, {kToKernel, kKernelCode, kKernelCode + 8}, kInKernel),
              ElementsAre("[kernel]", "+16", "+256", "+512"));
}

TEST_F(PerfStacksTest, ReturnAddressesOfACallChainAreOneBack) {
  EXPECT_THAT(TextsOfChain({kToUser, kCode + 16, kCode + 0x101, kCode + 0x201}, kInUser),
              ElementsAre("+16", "+256", "+512"));
  EXPECT_THAT(TextsOfChain({kCode + 16, kCode + 0x101}, kInUser), ElementsAre("+16", "+256"))
      << "without a mark it is of the record's mode";
}

TEST_F(PerfStacksTest, AChainBeginsInTheKernelAndGoesOnInTheUser) {
  EXPECT_THAT(
      TextsOfChain({kToKernel, kKernelCode, kKernelCode + 8, kToUser, kCode + 16, kCode + 0x101},
                   kInKernel),
      ElementsAre("[kernel]", "+16", "+256"));
  stacks_.frames().UseKernelSymbols(
      std::make_shared<const KernelSymbols>("ffffffff81000000 T first\nffffffff81000008 T second"));
  EXPECT_THAT(TextsOfChain({kToKernel, kKernelCode + 8, kKernelCode + 8}, kInKernel),
              ElementsAre("second", "first"));
}

TEST_F(PerfStacksTest, WithoutAChainThereIsTheInstructionAlone) {
  EXPECT_THAT(TextsOfChain({}, kInUser, kCode + 16), ElementsAre("+16"));
  EXPECT_THAT(TextsOfChain({}, kInKernel, kKernelCode), ElementsAre("[kernel]"));
  EXPECT_THAT(TextsOfChain({}, kInGuest, 0x1234), ElementsAre("4660"));
}

TEST_F(PerfStacksTest, FramesOfAGuestAreLeftOut) {
  EXPECT_THAT(TextsOfChain({kToGuest, kCode + 16, kCode + 32}, kInGuest), IsEmpty());
}

TEST_F(PerfStacksTest, WhatIsSampledFirstIsTheProgram) {
  TextsOfChain({}, kInUser, kCode + 16);
  EXPECT_EQ(builder_.profile().program, "program");
  EXPECT_EQ(builder_.profile().process_id, kSampled);
  ASSERT_EQ(builder_.profile().modules.size(), 1u);
  EXPECT_EQ(builder_.profile().modules[0].kind, ModuleKind::kProgram);
}

TEST_F(PerfStacksTest, NamesOfGeneratedCodeAreAskedForOnlyThere) {
  table_.Map(kSampled, {0x10000, 0x11000, 0, "//anon"});
  stacks_.UseGenerated([](std::uint32_t process, Address address) -> std::string_view {
    EXPECT_EQ(process, kSampled);
    EXPECT_LT(address, kCode) << "the code of a file has its own names";
    return address == 0x10010 ? "jit" : "";
  });
  EXPECT_THAT(TextsOfChain({0x10010, 0x10051, 0x20001, kCode + 0x101}, kInUser),
              ElementsAre("jit", std::to_string(0x10050), std::to_string(0x20000), "+256"));
}

}  // namespace
}  // namespace strobe::internal
