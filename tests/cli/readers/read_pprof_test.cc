#include "../../../src/cli/readers/read_pprof.h"

#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "../../../src/cli/profile/function_lines.h"
#include "../made_profile.h"
#include "../pprof_bytes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/encode/machine_tags.h"
#include "strobe/encode/pprof_encoder.h"
#include "strobe/testing/profiles.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;

using ::testing::SizeIs;

LoadedProfile ReadAll(const std::string& bytes) {
  Input input(ReadBytes(bytes));
  absl::StatusOr<LoadedProfile> loaded = ReadPprof(input);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return loaded.ok() ? *std::move(loaded) : LoadedProfile();
}

std::string Encoded(const Profile& profile, const Symbols& symbols,
                    std::vector<std::string> comments = {}) {
  PprofEncoder encoder({.moments = !profile.moments.empty(), .comments = std::move(comments)});
  absl::StatusOr<std::string> bytes = encoder.EncodeUncompressed(profile, symbols);
  EXPECT_TRUE(bytes.ok()) << bytes.status();
  return bytes.ok() ? *std::move(bytes) : "";
}

// "samples", a count, and the functions f and g at locations of the same ids.
PprofBytes TwoFunctions() {
  PprofBytes bytes;
  bytes.Strings({"", "samples", "count", "f", "g"}).Type(1, 2);
  bytes.Function(1, 3, 3).Function(2, 4, 4);
  bytes.Location(1, 0, 0, {{1, 0}}).Location(2, 0, 0, {{2, 0}});
  return bytes;
}

// A label whose value is a text, or a number.
std::string TextLabel(std::uint64_t key, std::uint64_t text) {
  return PprofBytes::Of({{1, key}, {2, text}});
}
std::string NumberLabel(std::uint64_t key, std::uint64_t number) {
  return PprofBytes::Of({{1, key}, {3, number}});
}

TEST(ReadPprofTest, ReadingAndWritingChangesNothing) {
  for (const testing::SampleProfile& sample : testing::SampleProfiles()) {
    const std::string bytes = Encoded(sample.profile, sample.symbols);
    const LoadedProfile once = ReadAll(bytes);
    const std::string again = Encoded(once.profile, once.symbols, once.comments);
    const LoadedProfile twice = ReadAll(again);
    EXPECT_EQ(RowsOf(twice), RowsOf(once)) << sample.name;
    EXPECT_EQ(Encoded(twice.profile, twice.symbols, twice.comments), again) << sample.name;
    EXPECT_EQ(once.format, "pprof");
    EXPECT_EQ(once.profile.period, sample.profile.period);
    EXPECT_EQ(once.profile.time_ns, sample.profile.time_ns);
    EXPECT_EQ(once.profile.duration_ns, sample.profile.duration_ns);
    EXPECT_EQ(once.profile.value_types, sample.profile.value_types);
    EXPECT_EQ(once.profile.default_value_type, sample.profile.default_value_type);
  }
}

TEST(ReadPprofTest, TheLabelsOfAThreadAreAProfilersOwn) {
  PprofBytes bytes = TwoFunctions();
  bytes.Strings({"thread_id", "thread_name", "main", "43"});  // from 5 on
  bytes.Sample({1}, {1}, {NumberLabel(5, 42), TextLabel(6, 7)});
  bytes.Sample({1}, {2}, {TextLabel(5, 8)});
  const LoadedProfile loaded = ReadAll(bytes.Take());
  ASSERT_THAT(loaded.profile.threads, SizeIs(2));
  EXPECT_EQ(loaded.profile.threads[0].id, 42u);
  EXPECT_EQ(loaded.profile.threads[0].name, "main");
  EXPECT_EQ(loaded.profile.threads[1].id, 43u) << "a number that is written as a text";
}

TEST(ReadPprofTest, ASampleWithATimeIsAMomentOfItsRow) {
  PprofBytes bytes = TwoFunctions();
  bytes.Strings({"end_timestamp_ns", "key", "value"});  // from 5 on
  bytes.Sample({1}, {1}, {NumberLabel(5, 300), TextLabel(6, 7)});
  bytes.Sample({1}, {2}, {NumberLabel(5, 200), TextLabel(6, 7)});
  bytes.Sample({1}, {4}, {TextLabel(6, 7)});
  bytes.Sample({2}, {8}, {NumberLabel(5, 100)});
  const LoadedProfile loaded = ReadAll(bytes.Take());
  EXPECT_THAT(RowsOf(loaded), ElementsAre("f 7", "g 8"));
  EXPECT_EQ(loaded.profile.Labels(0).Text("key"), "value");
  ASSERT_THAT(loaded.profile.moments, SizeIs(3));
  EXPECT_EQ(loaded.profile.moments[0].time_ns, 100);
  EXPECT_EQ(loaded.profile.moments[0].sample, 1u);
  EXPECT_EQ(loaded.profile.moments[2].time_ns, 300);
  EXPECT_EQ(loaded.profile.moments[2].sample, 0u);
  EXPECT_THAT(loaded.profile.moment_values, ElementsAre(8, 2, 1));
}

TEST(ReadPprofTest, ANameThatIsShortOfTheSystemNameBecomesThat) {
  PprofBytes bytes;
  bytes.Strings({"", "samples", "count", "ns::f", "ns::f(int)", "main", "_Z4main"}).Type(1, 2);
  bytes.Function(1, 3, 4).Function(2, 5, 6).Function(3, 0, 6).Function(4, 0, 0);
  const LoadedProfile loaded = ReadAll(bytes.Take());
  const auto& functions = loaded.symbols.functions;
  ASSERT_THAT(functions, SizeIs(4));
  EXPECT_EQ(functions[0].name, "ns::f(int)");
  EXPECT_EQ(functions[1].name, "main") << "of another name";
  EXPECT_EQ(functions[1].system_name, "_Z4main");
  EXPECT_EQ(functions[2].name, "_Z4main") << "without a name of its own";
  EXPECT_EQ(functions[3].name, "[no name]");
}

TEST(ReadPprofTest, TheFirstMappingIsTheProgram) {
  PprofBytes bytes = TwoFunctions();
  bytes.Strings({"/bin/program", "/lib/libz.so.1", "[vdso]", "//anon", "abcd"});  // from 5 on
  bytes.Location(3, 8, 0x7010, {{1, 0}});  // names a library before the program is there
  bytes.Mapping(7, 0x400000, 0x500000, 0x1000, 5, 9);
  bytes.Mapping(8, 0x7000, 0x8000, 0, 6).Mapping(9, 0x9000, 0xA000, 0, 7);
  bytes.Mapping(10, 0xB000, 0xC000, 0, 8);
  const LoadedProfile loaded = ReadAll(bytes.Take());
  const std::vector<Module>& modules = loaded.profile.modules;
  ASSERT_THAT(modules, SizeIs(4));
  EXPECT_EQ(modules[0].path, "/bin/program");
  EXPECT_EQ(modules[0].kind, ModuleKind::kProgram);
  EXPECT_EQ(modules[0].build_id, "abcd");
  EXPECT_EQ(modules[0].load_bias, 0x400000u - 0x1000u) << "addresses equal offsets";
  EXPECT_EQ(loaded.profile.program, "program");
  EXPECT_EQ(modules[1].path, "/lib/libz.so.1");
  EXPECT_EQ(modules[1].kind, ModuleKind::kSharedLibrary);
  EXPECT_EQ(loaded.profile.frames[2], (Frame{0x7010, 1}));
  EXPECT_EQ(modules[2].kind, ModuleKind::kVdso);
  EXPECT_EQ(modules[3].kind, ModuleKind::kGeneratedCode);
}

TEST(ReadPprofTest, ModulesOfWindowsAreKnownByTheirNames) {
  PprofBytes bytes = TwoFunctions();
  bytes.Strings({"C:\\app\\program.exe", "C:\\app\\z.dll"});
  bytes.Mapping(1, 0x140001000, 0x140002000, 0x400, 5).Mapping(2, 0x7000, 0x8000, 0x400, 6);
  const LoadedProfile loaded = ReadAll(bytes.Take());
  ASSERT_THAT(loaded.profile.modules, SizeIs(2));
  for (const Module& module : loaded.profile.modules) {
    EXPECT_EQ(module.format, ImageFormat::kPe);
    EXPECT_EQ(module.load_bias, module.start);
  }
  EXPECT_EQ(loaded.profile.modules[0].kind, ModuleKind::kProgram);
  EXPECT_EQ(loaded.profile.modules[1].kind, ModuleKind::kSharedLibrary);
  EXPECT_EQ(loaded.profile.program, "program.exe");
}

TEST(ReadPprofTest, InlinedFunctionsStandBeforeTheFramesOwn) {
  PprofBytes bytes = TwoFunctions();
  bytes.Location(3, 0, 0, {{2, 9}, {1, 8}});
  const LoadedProfile loaded = ReadAll(bytes.Take());
  const FrameSymbols& names = loaded.symbols.frames[2];
  EXPECT_EQ(names.function, 0u);
  EXPECT_EQ(names.line, 8u);
  ASSERT_EQ(names.inlined_count, 1u);
  EXPECT_EQ(loaded.symbols.inlined[names.inlined_begin].function, 1u);
  EXPECT_EQ(loaded.symbols.inlined[names.inlined_begin].line, 9u);
}

TEST(ReadPprofTest, TheDefaultTypeIsTheLastIfTheFileNamesNone) {
  const auto read = [](std::uint64_t default_type) {
    PprofBytes bytes;
    bytes.Strings({"", "samples", "count", "cpu", "nanoseconds"}).Type(1, 2).Type(3, 4);
    bytes.AddNumber(kDefaultSampleType, default_type);
    return ReadAll(bytes.Take()).profile.default_value_type;
  };
  EXPECT_EQ(read(0), 1u);
  EXPECT_EQ(read(1), 0u);
  EXPECT_EQ(read(3), 1u);
}

TEST(ReadPprofTest, CommentsAreTextsForPeople) {
  PprofBytes bytes = TwoFunctions();
  bytes.Strings({"one\nline"}).AddNumber(kComment, 5).AddNumber(kComment, 3);
  EXPECT_THAT(ReadAll(bytes.Take()).comments, ElementsAre("one line", "f"));
}

TEST(ReadPprofTest, ACommentSaysWhatTheProgramIsCalled) {
  const auto program_of = [](std::initializer_list<const char*> comments) {
    PprofBytes bytes = TwoFunctions();
    bytes.Strings({"/bin/file"}).Mapping(7, 0x400000, 0x500000, 0x1000, 5);
    int next = 6;
    for (const char* const comment : comments) bytes.Strings({comment}).AddNumber(kComment, next++);
    return ReadAll(bytes.Take()).profile.program;
  };
  EXPECT_EQ(program_of({"strobe: programs", "strobe: program x"}), "file");
  EXPECT_EQ(program_of({"strobe: program a link, process 7, period 0"}), "a link");
  EXPECT_EQ(program_of({"strobe: program a, process 7", "strobe: program a, process 8"}), "a");
  EXPECT_EQ(program_of({"strobe: program a, process 7", "strobe: program b, process 7"}), "file");
}

TEST(ReadPprofTest, ACommentSaysWhichMachineItWas) {
  const auto machine_of = [](std::initializer_list<const char*> comments) {
    PprofBytes bytes = TwoFunctions();
    int next = 5;
    for (const char* const comment : comments) bytes.Strings({comment}).AddNumber(kComment, next++);
    return MachineComment(ReadAll(bytes.Take()).profile.machine);
  };
  EXPECT_EQ(machine_of({"rate: 100 Hz", "machine: cpus=4; os=Own"}), "machine: cpus=4; os=Own");
  EXPECT_EQ(machine_of({"machine: cpus=4; os=Own", "machine: cpus=8; os=Own"}), "machine: os=Own")
      << "what a sum of two machines has in common";
}

TEST(ReadPprofTest, FramesThatAreNoneOfCodeAreThatAgain) {
  PprofBytes bytes;
  bytes.Strings({"", "samples", "count", "[truncated]", "[libz.so.1]", "/lib/libz.so.1"});
  bytes.Type(1, 2).Function(1, 3, 3).Function(2, 4, 4).Mapping(1, 0x1000, 0x2000, 0, 5);
  bytes.Location(1, 0, 0, {{1, 0}}).Location(2, 1, 0x1010, {{2, 0}});
  bytes.Sample({2, 1}, {3});
  const LoadedProfile loaded = ReadAll(bytes.Take());
  EXPECT_EQ(loaded.profile.frames[0],
            (Frame{static_cast<Address>(PseudoFrame::kTruncated), Frame::kPseudo}));
  EXPECT_EQ(loaded.profile.frames[1], (Frame{0x1010, 0}));
  EXPECT_FALSE(loaded.symbols.functions[1].resolved) << "the library's code has no name";
}

TEST(ReadPprofTest, RefusesAFieldThatIsTooLong) {
  std::string bytes = TwoFunctions().Take();
  ProtoWriter writer;
  writer.Message(kStringTable, std::string(kMaxPprofFieldBytes + 1, 'x'));
  bytes += writer.Take();
  Input input(ReadBytes(bytes));
  EXPECT_EQ(ReadPprof(input).status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ReadPprofTest, EveryBeginningIsAnErrorOrAWholeProfile) {
  const testing::SampleProfile sample = testing::DetailedProfile();
  const std::string bytes = Encoded(sample.profile, sample.symbols);
  std::size_t whole = 0;
  for (std::size_t size = 0; size < bytes.size(); ++size) {
    const std::string part = bytes.substr(0, size);
    Input input(ReadBytes(part));
    const absl::StatusOr<LoadedProfile> loaded = ReadPprof(input);
    if (!loaded.ok()) {
      EXPECT_EQ(loaded.status().code(), absl::StatusCode::kInvalidArgument) << size;
      continue;
    }
    ++whole;
    EXPECT_TRUE(FunctionLines::Make(*loaded, false).ok()) << size;
  }
  EXPECT_LT(whole, bytes.size() / 10) << "nearly all beginnings lack something";
}

}  // namespace
}  // namespace strobe::internal
