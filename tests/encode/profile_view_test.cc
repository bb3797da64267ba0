#include "strobe/encode/profile_view.h"

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::uint32_t> StackOf(const ProfileView& view, std::size_t sample) {
  std::vector<std::uint32_t> frames;
  view.VisitStack(sample, [&](std::uint32_t frame) { frames.push_back(frame); });
  return frames;
}

TEST(ProfileViewTest, AcceptsEveryProfileThatAnEncoderMust) {
  for (const SampleProfile& sample : SampleProfiles()) {
    const auto view = ProfileView::Make(sample.profile, sample.symbols);
    ASSERT_TRUE(view.ok()) << sample.name << ": " << view.status();
    EXPECT_EQ(&view->profile(), &sample.profile);
  }
  const Profile profile;
  const Symbols symbols;
  const auto view = ProfileView::Make(profile, symbols);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->function_count(), 0U);
}

TEST(ProfileViewTest, FunctionsOfPseudoFramesAndLibrariesFollowThoseOfTheSymbols) {
  const SampleProfile sample = SmallProfile();
  const auto view = ProfileView::Make(sample.profile, sample.symbols);
  ASSERT_TRUE(view.ok()) << view.status();
  ASSERT_EQ(view->function_count(), 4 + 1 + kPseudoFrameCount);
  EXPECT_EQ(view->function(1).name, "sample::Busy(int, std::vector<int> const&)");
  EXPECT_EQ(view->function(1).system_name, "_ZN6sample4BusyEiRKSt6vectorIiSaIiEE");
  EXPECT_EQ(view->function(4).name, "[libsample.so.6]");
  EXPECT_EQ(view->function(5).name, "[truncated]");
  EXPECT_EQ(view->function(5).system_name, "[truncated]");
  EXPECT_EQ(view->FunctionOf(1), 1U);
  EXPECT_EQ(view->FunctionOf(3), 4U) << "the symbolizer has found no name";
  EXPECT_EQ(view->FunctionOf(4), ProfileView::kNone) << "no symbolizer has looked for a name";
  EXPECT_EQ(view->FunctionOf(5), 5U);
}

TEST(ProfileViewTest, AZonesFrameHasTheZonesName) {
  SampleProfile sample = EmptyProfile();
  sample.profile.zones = {"request"};
  for (const Address index : {0, 1}) {
    sample.profile.frames.push_back({Frame::kFirstZone + index, Frame::kPseudo});
    sample.symbols.frames.push_back({});
  }
  const auto view = ProfileView::Make(sample.profile, sample.symbols);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->FrameText(0), "request");
  EXPECT_EQ(view->FrameText(1), "[unknown]") << "an index that does not exist";
}

TEST(ProfileViewTest, EqualPseudoFramesShareAFunctionAndUnknownOnesAreNamedSo) {
  SampleProfile sample = EmptyProfile();
  for (const Address address : {3, 99, 3, 100}) {
    sample.profile.frames.push_back({address, Frame::kPseudo});
    sample.symbols.frames.push_back({});
  }
  const auto view = ProfileView::Make(sample.profile, sample.symbols);
  ASSERT_TRUE(view.ok()) << view.status();
  ASSERT_EQ(view->function_count(), 2U);
  EXPECT_EQ(view->function(0).name, "[lost]");
  EXPECT_EQ(view->function(1).name, "[unknown]");
  EXPECT_EQ(view->FunctionOf(2), 0U);
  EXPECT_EQ(view->FunctionOf(3), 1U);
}

TEST(ProfileViewTest, CodeWithoutANameIsOneFunctionALibrary) {
  SampleProfile sample = SmallProfile();
  Profile& profile = sample.profile;
  const auto add = [&](Address address, std::uint32_t module) {
    profile.frames.push_back({address, module});
    sample.symbols.frames.push_back({.function = 3});
    return static_cast<std::uint32_t>(profile.frames.size() - 1);
  };
  Module vdso{.start = 0x8000, .limit = 0x9000, .path = "[vdso]", .build_id = {}};
  vdso.kind = ModuleKind::kVdso;
  Module again{.start = 0xA000, .limit = 0xB000, .path = "/other/libsample.so.6", .build_id = {}};
  Module code{.start = 0xC000, .limit = 0xD000, .path = "a/b", .build_id = {}};
  code.kind = ModuleKind::kGeneratedCode;
  profile.modules.insert(profile.modules.end(), {vdso, again, code});
  const std::uint32_t other = add(0x7F0000054322, 1);
  const std::uint32_t in_vdso = add(0x8100, 2);
  const std::uint32_t in_again = add(0xA100, 3);
  const std::uint32_t in_code = add(0xC100, 4);
  const std::uint32_t outside = add(0x100, 4);
  const auto view = ProfileView::Make(profile, sample.symbols);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->FrameText(3), "[libsample.so.6]");
  EXPECT_EQ(view->FunctionOf(other), view->FunctionOf(3));
  EXPECT_EQ(view->FunctionOf(in_again), view->FunctionOf(3)) << "the name tells functions apart";
  EXPECT_EQ(view->FrameText(in_vdso), "[vdso]");
  EXPECT_EQ(view->FunctionOf(in_code), 3U) << "generated code has the symbolizer's name";
  EXPECT_EQ(view->FunctionOf(outside), 3U);
}

TEST(ProfileViewTest, AFrameHasALineAndTheFunctionsInlinedThere) {
  const SampleProfile sample = DetailedProfile();
  const auto view = ProfileView::Make(sample.profile, sample.symbols);
  ASSERT_TRUE(view.ok()) << view.status();
  const SourceLine line = view->LineOf(1);
  EXPECT_EQ(view->function(line.function).file, "/src/sample/busy.cc");
  EXPECT_EQ(view->function(line.function).line, 20u);
  EXPECT_EQ(line.line, 25u);
  EXPECT_EQ(line.column, 3u);
  const std::span<const SourceLine> inlined = view->InlinedAt(1);
  ASSERT_EQ(inlined.size(), 2u);
  EXPECT_EQ(view->function(inlined[0].function).name, "sample::Step(int)");
  EXPECT_EQ(inlined[0].line, 6u);
  EXPECT_EQ(view->function(inlined[1].function).name, "sample::Loop<int>(int)");
  EXPECT_THAT(view->InlinedAt(0), IsEmpty());
  EXPECT_EQ(view->LineOf(4).function, ProfileView::kNone);
  EXPECT_EQ(view->LineOf(5).function, view->FunctionOf(5)) << "a pseudo-frame";
  EXPECT_THAT(view->InlinedAt(5), IsEmpty());
  const auto names = [&](std::uint32_t frame) {
    std::vector<std::string> result;
    view->VisitLines(frame, [&](const SourceLine& visited) {
      result.emplace_back(view->function(visited.function).name);
    });
    return result;
  };
  EXPECT_THAT(names(1), ElementsAre("sample::Step(int)", "sample::Loop<int>(int)",
                                    "sample::Busy(int, std::vector<int> const&)"));
  EXPECT_THAT(names(4), IsEmpty());
  EXPECT_THAT(names(5), ElementsAre("[truncated]"));
}

TEST(ProfileViewTest, InlinedFunctionsAndMomentsMustExist) {
  const auto status = [](const auto& change) {
    SampleProfile sample = DetailedProfile();
    change(sample);
    return std::string(ProfileView::Make(sample.profile, sample.symbols).status().message());
  };
  EXPECT_THAT(status([](SampleProfile& s) { s.symbols.frames[1].inlined_count = 3; }),
              HasSubstr("inlined function of frame 1"));
  EXPECT_THAT(status([](SampleProfile& s) { s.symbols.frames[1].inlined_begin = 0xFFFFFFFF; }),
              HasSubstr("inlined function of frame 1"));
  EXPECT_THAT(status([](SampleProfile& s) { s.symbols.inlined[1].function = 99; }),
              HasSubstr("inlined function 1"));
  EXPECT_THAT(status([](SampleProfile& s) { s.profile.moments[2].sample = 1000; }),
              HasSubstr("moment 2"));
  EXPECT_THAT(status([](SampleProfile& s) { s.profile.moment_values.pop_back(); }),
              HasSubstr("17 values for 6 moments of 3"));
}

TEST(ProfileViewTest, ATextForEveryFrame) {
  SampleProfile sample = SmallProfile();
  sample.symbols.functions[0].name = "f\x80g";
  const auto named = ProfileView::Make(sample.profile, sample.symbols);
  ASSERT_TRUE(named.ok()) << named.status();
  EXPECT_EQ(named->FrameText(0), "f?g");
  EXPECT_EQ(named->FrameText(4), "0xffffffff81000000");
  EXPECT_EQ(named->FrameText(5), "[truncated]");
}

TEST(ProfileViewTest, WithoutSymbolsAFrameIsItsPlaceInItsModule) {
  SampleProfile sample = UnsymbolizedProfile();
  Profile& profile = sample.profile;
  profile.frames[2].address = profile.modules[1].limit;
  Module& generated = profile.modules.emplace_back(
      Module{.start = 0x9000, .limit = 0xA000, .load_bias = 0x9000, .path = "a/b", .build_id = {}});
  generated.kind = ModuleKind::kGeneratedCode;
  Module& windows = profile.modules.emplace_back(Module{.start = 0xB000,
                                                        .limit = 0xC000,
                                                        .load_bias = 0xA000,
                                                        .path = "C:\\x\\y.dll",
                                                        .build_id = {}});
  windows.format = ImageFormat::kPe;
  const auto first_new = static_cast<std::uint32_t>(profile.frames.size());
  profile.frames.push_back({0x9012, 2});
  profile.frames.push_back({0xB012, 3});
  const auto view = ProfileView::Make(profile, sample.symbols);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_EQ(view->FrameText(0), "sample_program+0x2233");
  EXPECT_EQ(view->FrameText(2), "0x7f0000100000") << "outside of its module";
  EXPECT_EQ(view->FrameText(5), "[truncated]");
  EXPECT_EQ(view->FrameText(first_new), "a/b+0x12") << "the name of generated code is no path";
  EXPECT_EQ(view->FrameText(first_new + 1), "y.dll+0x1012");
}

TEST(ProfileViewTest, SymbolsOfAModuleGoAsFarAsThoseOfEachOfItsFrames) {
  SampleProfile sample = DetailedProfile();
  sample.profile.modules.push_back({.start = 1, .limit = 2, .path = "idle", .build_id = {}});
  const auto view = ProfileView::Make(sample.profile, sample.symbols);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_TRUE(view->SymbolsOf(0).functions);
  EXPECT_TRUE(view->SymbolsOf(0).files);
  EXPECT_TRUE(view->SymbolsOf(0).lines);
  EXPECT_TRUE(view->SymbolsOf(1).functions) << "the symbolizer has looked for each";
  EXPECT_FALSE(view->SymbolsOf(1).files);
  EXPECT_FALSE(view->SymbolsOf(1).lines);
  EXPECT_FALSE(view->SymbolsOf(2).functions) << "it has no frames";
  EXPECT_EQ(view->ModuleOf(0), 0U);
  EXPECT_EQ(view->ModuleOf(4), ProfileView::kNone);
  EXPECT_EQ(view->ModuleOf(5), ProfileView::kNone) << "a pseudo-frame";
  sample.symbols.frames[2].function = FrameSymbols::kNone;
  const auto partly = ProfileView::Make(sample.profile, sample.symbols);
  ASSERT_TRUE(partly.ok()) << partly.status();
  EXPECT_FALSE(partly->SymbolsOf(1).functions);
}

TEST(ProfileViewTest, StacksGoFromTheLeafToTheRoot) {
  const SampleProfile sample = SmallProfile();
  const auto view = ProfileView::Make(sample.profile, sample.symbols);
  ASSERT_TRUE(view.ok()) << view.status();
  EXPECT_THAT(StackOf(*view, 1), ElementsAre(2, 1, 0));
  EXPECT_THAT(StackOf(*view, 6), IsEmpty());
}

TEST(ProfileViewTest, AnIndexOutOfRangeIsAnErrorThatSaysWhich) {
  const auto error = [](auto change) {
    SampleProfile sample = SmallProfile();
    change(sample);
    const auto view = ProfileView::Make(sample.profile, sample.symbols);
    EXPECT_EQ(view.status().code(), absl::StatusCode::kInvalidArgument);
    return std::string(view.status().message());
  };
  EXPECT_THAT(error([](SampleProfile& s) { s.profile.samples[1].stack = 1000; }),
              HasSubstr("sample 1 "));
  EXPECT_THAT(error([](SampleProfile& s) { s.profile.samples[2].labels = 3; }),
              HasSubstr("sample 2 "));
  EXPECT_THAT(error([](SampleProfile& s) { s.profile.stacks.clear(); }), HasSubstr("sample 0 "));
  EXPECT_THAT(error([](SampleProfile& s) { s.profile.stacks[2].frame = 99; }),
              HasSubstr("stack 2 "));
  EXPECT_THAT(error([](SampleProfile& s) { s.profile.stacks.back().parent = 99; }),
              HasSubstr("stack "));
  EXPECT_THAT(error([](SampleProfile& s) { s.profile.frames[0].module = 2; }),
              HasSubstr("frame 0 "));
  EXPECT_THAT(error([](SampleProfile& s) { s.symbols.frames[0].function = 4; }),
              HasSubstr("symbol of frame 0 "));
  EXPECT_THAT(error([](SampleProfile& s) { s.symbols.frames.pop_back(); }),
              HasSubstr("symbols for "));
  EXPECT_THAT(error([](SampleProfile& s) { s.profile.values.pop_back(); }),
              HasSubstr("values for"));
  EXPECT_THAT(error([](SampleProfile& s) { s.profile.default_value_type = 3; }),
              HasSubstr("default value type 3 "));
}

}  // namespace
}  // namespace strobe::testing
