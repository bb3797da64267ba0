#include "../../../src/cli/pgo/code_samples.h"

#include <algorithm>
#include <cstdint>
#include <string>

#include "../../symbolize/debug_program.h"
#include "../../symbolize/elf_bytes.h"
#include "../../symbolize/memory_files.h"
#include "../made_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

// SHN_ABS of the ELF specification: a symbol in no section.
constexpr std::uint16_t kAbsolute = 0xFFF1;

constexpr Address kLoadedAt = 0x7F0000000000;

// The program of debug_program.h, as a file whose code is at 0x1000 of it.
testing::Bytes ProgramElf(const testing::Bytes& build_id) {
  testing::ElfBytes elf;
  elf.AddBuildId(build_id);
  elf.segments.push_back({.offset = 0x1000, .address = 0x1000, .bytes = 0x200});
  elf.AddSymbols(testing::ElfBytes::kSymtab,
                 {{.name = "f", .value = 0x1000, .bytes = 0x100, .section = kAbsolute}});
  for (const auto& [name, content] : testing::DebugProgram())
    elf.Add({.name = name, .content = content});
  testing::Bytes file = elf.File();
  if (file.size() < 0x1200) file.resize(0x1200);
  return file;
}

class CodeSamplesTest : public ::testing::Test {
 protected:
  CodeSamplesTest() {
    files_.Write("/bin/x", ProgramElf({0xAB, 0xCD}));
    made_.profile().modules.push_back({.start = kLoadedAt,
                                       .limit = kLoadedAt + 0x200,
                                       .file_offset = 0x1000,
                                       .path = "/bin/x",
                                       .build_id = "abcd"});
  }
  // The function of the profile that is at an address of the file.
  void Put(const char* name, std::uint64_t address) {
    strobe::Frame& frame = made_.profile().frames[made_.Frame(name)];
    frame = {.address = kLoadedAt + address - 0x1000, .module = 0};
  }
  absl::StatusOr<BinarySamples> Collect() {
    const LoadedProfile loaded = made_.Finish();
    const absl::StatusOr<Module> binary = ModuleOf("/bin/x", files_);
    if (!binary.ok()) return binary.status();
    return CollectCodeSamples(loaded, 0, *binary, files_, {});
  }
  // The place whose innermost frame is at that line; a place without an amount if there is none.
  static CodeSamples::Place At(const BuildSamples& build, std::uint32_t line) {
    for (const CodeSamples::Place& place : build.code.places) {
      if (!place.frames.empty() && place.frames[0].line == line) return place;
    }
    return {};
  }

  testing::MemoryFiles files_;
  MadeProfile made_;
};

TEST_F(CodeSamplesTest, PlacesHaveTheFramesOfTheDebugInformation) {
  made_.Add({"root", "inner"}, {30});
  made_.Add({"root"}, {10});
  made_.Add({"elsewhere"}, {60});
  Put("root", 0x1008);
  Put("inner", 0x1014);
  const absl::StatusOr<BinarySamples> samples = Collect();
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_EQ(samples->whole, 100);
  ASSERT_THAT(samples->builds, SizeIs(1));
  const BuildSamples& build = samples->builds[0];
  EXPECT_TRUE(build.is_current);
  EXPECT_TRUE(build.has_file);
  const CodeSamples::Place inner = At(build, 4);
  EXPECT_EQ(inner.amount, 30);
  ASSERT_THAT(inner.frames, SizeIs(2));
  EXPECT_EQ(inner.frames[0].function, "_Z1gv");
  EXPECT_EQ(inner.frames[0].declaration_line, 3u);
  EXPECT_EQ(inner.frames[1].declaration_line, 10u);
  EXPECT_EQ(inner.symbol, "f");
  EXPECT_EQ(inner.symbol_bytes, 0x100u);
  EXPECT_EQ(inner.code_bytes, 0x10u) << "all that is inlined there is of one line";
  ASSERT_THAT(build.code.calls, SizeIs(1));
  EXPECT_EQ(build.code.calls[0].amount, 30);
  EXPECT_EQ(build.code.places[build.code.calls[0].caller].amount, 10);
  EXPECT_EQ(std::ranges::count(build.code.places, true, &CodeSamples::Place::is_entry), 1)
      << "f begins at an address without samples";
}

TEST_F(CodeSamplesTest, AnotherBuildWithoutItsFileHasTheFramesOfTheProfile) {
  made_.Add({"root", "inner"}, {30});
  Put("root", 0x1008);
  Put("inner", 0x1014);
  made_.profile().modules[0].build_id = "0123";
  made_.symbols().frames[made_.Frame("inner")].line = 17;
  made_.symbols().functions[made_.Frame("inner")].line = 15;
  const absl::StatusOr<BinarySamples> samples = Collect();
  ASSERT_TRUE(samples.ok()) << samples.status();
  const BuildSamples& build = samples->builds.at(0);
  EXPECT_FALSE(build.is_current);
  EXPECT_FALSE(build.has_file);
  const CodeSamples::Place inner = At(build, 17);
  EXPECT_EQ(inner.amount, 30);
  EXPECT_EQ(inner.frames.at(0).function, "inner");
  EXPECT_EQ(inner.frames.at(0).declaration_line, 15u);
}

TEST_F(CodeSamplesTest, AnotherBuildHasTheFramesOfItsOwnFile) {
  made_.Add({"inner"}, {30});
  Put("inner", 0x1014);
  made_.profile().modules[0].build_id = "0123";
  made_.profile().modules[0].path = "/old/x";
  files_.Write("/old/x", ProgramElf({0x01, 0x23}));
  const absl::StatusOr<BinarySamples> samples = Collect();
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_FALSE(samples->builds.at(0).is_current);
  EXPECT_TRUE(samples->builds.at(0).has_file);
  EXPECT_EQ(At(samples->builds.at(0), 4).amount, 30);
}

TEST_F(CodeSamplesTest, OtherProgramsAreNoBuilds) {
  made_.Add({"root"}, {30});
  Put("root", 0x1008);
  made_.profile().modules[0].build_id = "0123";
  made_.profile().modules[0].path = "/bin/y";
  const absl::StatusOr<BinarySamples> samples = Collect();
  ASSERT_FALSE(samples.ok());
  EXPECT_THAT(std::string(samples.status().message()), HasSubstr("/bin/x"));
}

TEST_F(CodeSamplesTest, AModuleWithoutABuildIdIsTheBinaryByItsName) {
  made_.Add({"root"}, {30});
  Put("root", 0x1008);
  made_.profile().modules[0].build_id = "";
  const absl::StatusOr<BinarySamples> samples = Collect();
  ASSERT_TRUE(samples.ok()) << samples.status();
  EXPECT_TRUE(samples->builds.at(0).is_current);
}

TEST_F(CodeSamplesTest, RefusesWhatIsNoElfFile) {
  files_.Write("/bin/x", {'#', '!'});
  made_.Add({"root"}, {30});
  EXPECT_THAT(std::string(Collect().status().message()), HasSubstr("no ELF file"));
}

}  // namespace
}  // namespace strobe::internal
