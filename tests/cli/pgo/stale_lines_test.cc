#include "../../../src/cli/pgo/stale_lines.h"

#include <cstdint>

#include "../../symbolize/debug_program.h"
#include "../../symbolize/elf_bytes.h"
#include "../../symbolize/memory_files.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// SHN_ABS of the ELF specification: a symbol in no section.
constexpr std::uint16_t kAbsoluteSymbol = 0xFFF1;

TEST(StaleLinesTest, FindsTheLocationsOfFunctionsAndOfWhatIsInlined) {
  testing::MemoryFiles files;
  testing::ElfBytes elf;
  elf.AddBuildId({0xAB, 0xCD});
  elf.AddSymbols(testing::ElfBytes::kSymtab,
                 {{.name = "f", .value = 0x1000, .bytes = 0x100, .section = kAbsoluteSymbol}});
  for (const auto& [name, content] : testing::DebugProgram())
    elf.Add({.name = name, .content = content});
  files.Write("/bin/x", elf.File());
  Module binary;
  binary.path = "/bin/x";
  binary.build_id = "abcd";
  FunctionSamplesMap samples;
  samples["f"].lines[{.offset = 1}].count = 1;
  const FunctionLocations known =
      LocationsOf(samples, binary, files, {}, DiscriminatorKind::kClang);
  ASSERT_THAT(known, SizeIs(2));
  EXPECT_THAT(known.at("f"), ElementsAre(LineLocation{.offset = 1}, LineLocation{.offset = 2},
                                         LineLocation{.offset = 3}));
  EXPECT_THAT(known.at("_Z1gv"), ElementsAre(LineLocation{.offset = 1, .discriminator = 3}))
      << "the line's is 6, packed";
  EXPECT_THAT(LocationsOf({{"h", {}}}, binary, files, {}, DiscriminatorKind::kClang), IsEmpty());
}

TEST(StaleLinesTest, RemovesWhatIsNotThere) {
  FunctionSamplesMap samples;
  samples["gone"].lines[{.offset = 1}].count = 1;
  FunctionSamples& f = samples["f"];
  f.lines[{.offset = 1}] = {.count = 10, .calls = {{"gone", 6}, {"g", 4}}};
  f.lines[{.offset = 2}].count = 20;
  f.inlined[{.offset = 3}]["g"].lines = {{{.offset = 1}, {.count = 1}},
                                         {{.offset = 2}, {.count = 2}}};
  f.inlined[{.offset = 3}]["elsewhere"].lines[{.offset = 9}].count = 3;
  f.inlined[{.offset = 4}]["g"].lines[{.offset = 1}].count = 40;
  KeepKnown(samples, {{"f", {{.offset = 1}, {.offset = 3}}}, {"g", {{.offset = 1}}}});
  ASSERT_THAT(samples, SizeIs(1));
  EXPECT_EQ(samples.at("f").total(), 10 + 1 + 3);
  EXPECT_THAT(samples.at("f").lines.at({.offset = 1}).calls, SizeIs(1));
}

}  // namespace
}  // namespace strobe::internal
