// The conformance suite of Symbolizer. A symbolizer of your own:
//
//   // In namespace strobe::testing:
//   INSTANTIATE_TYPED_TEST_SUITE_P(MySymbolizer, SymbolizerConformance, MySymbolizer);
#pragma once

#include <set>
#include <string>
#include <tuple>

#include "absl/status/statusor.h"
#include "gtest/gtest.h"
#include "strobe/core/thread_info.h"
#include "strobe/symbolize/symbolizer.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {

template <class S>
class SymbolizerConformance : public ::testing::Test {
 protected:
  static_assert(Symbolizer<S>);

  // Symbolizes, and checks what must hold for every result.
  static Symbols Symbolize(S& symbolizer, const Profile& profile, const std::string& name) {
    absl::StatusOr<Symbols> result = symbolizer.Symbolize(profile);
    EXPECT_TRUE(result.ok()) << name << ": " << result.status().ToString();
    if (!result.ok()) return {};
    std::set<std::tuple<std::string, std::string, std::string>> distinct;
    for (const FunctionSymbol& function : result->functions) {
      EXPECT_FALSE(function.name.empty()) << name;
      EXPECT_EQ(function.name, ValidUtf8(function.name)) << name;
      EXPECT_EQ(function.system_name, ValidUtf8(function.system_name)) << name;
      EXPECT_EQ(function.file, ValidUtf8(function.file)) << name;
      EXPECT_TRUE(distinct.insert({function.name, function.system_name, function.file}).second)
          << name << ": twice " << function.name << " of " << function.file;
    }
    if (!result->modules.empty()) {
      EXPECT_EQ(result->modules.size(), profile.modules.size()) << name;
    }
    if (result->frames.empty()) return *std::move(result);
    EXPECT_EQ(result->frames.size(), profile.frames.size()) << name;
    for (std::size_t i = 0; i < std::min(result->frames.size(), profile.frames.size()); ++i) {
      const std::uint32_t function = result->frames[i].function;
      if (profile.frames[i].is_pseudo()) {
        EXPECT_EQ(function, FrameSymbols::kNone)
            << name << ": a pseudo-frame has a name of its own";
      } else {
        EXPECT_LT(function, result->functions.size()) << name << ": frame " << i << " has no name";
      }
      const FrameSymbols& frame = result->frames[i];
      EXPECT_LE(frame.inlined_begin, result->inlined.size()) << name;
      EXPECT_LE(std::uint64_t{frame.inlined_begin} + frame.inlined_count, result->inlined.size())
          << name;
    }
    for (const SourceLine& line : result->inlined)
      EXPECT_LT(line.function, result->functions.size()) << name;
    return *std::move(result);
  }
};
TYPED_TEST_SUITE_P(SymbolizerConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(SymbolizerConformance);

// Every frame that is not a pseudo-frame has a name, or none has.
TYPED_TEST_P(SymbolizerConformance, AnswersForEveryFrame) {
  TypeParam symbolizer;
  for (const SampleProfile& sample : SampleProfiles())
    this->Symbolize(symbolizer, sample.profile, sample.name);
  this->Symbolize(symbolizer, Profile{}, "a default-constructed profile");
}

// Data cached from earlier profiles change no result.
TYPED_TEST_P(SymbolizerConformance, AnswersTheSameAgain) {
  TypeParam used;
  for (int round = 0; round < 2; ++round) {
    for (const SampleProfile& sample : SampleProfiles()) {
      TypeParam fresh;
      const Symbols a = this->Symbolize(used, sample.profile, sample.name);
      const Symbols b = this->Symbolize(fresh, sample.profile, sample.name);
      ASSERT_EQ(a.frames.size(), b.frames.size());
      ASSERT_EQ(a.functions.size(), b.functions.size());
      for (std::size_t i = 0; i < a.functions.size(); ++i)
        EXPECT_EQ(a.functions[i].name, b.functions[i].name);
      for (std::size_t i = 0; i < a.frames.size(); ++i)
        EXPECT_EQ(a.frames[i].function, b.frames[i].function);
    }
  }
}

// A module whose file is missing, or is not an image, costs only names. It never stops the program.
TYPED_TEST_P(SymbolizerConformance, MissingFilesCostOnlyNames) {
  TypeParam symbolizer;
  Profile profile;
  for (const char* path : {"", "/", "/nonexistent/libgone.so", "/dev/zero", "/dev/null",
                           "relative.so", "[vdso]", "\xff\xfe.so"}) {
    for (const char* build_id :
         {"", "0", "00", "../../../../etc/passwd", "0123456789abcdef0123456789abcdef01234567"}) {
      const auto module = static_cast<std::uint32_t>(profile.modules.size());
      const Address start = 0x10000 * (module + 1);
      Module& added =
          profile.modules.emplace_back(Module{start, start + 0x1000, 0, start, path, build_id});
      added.kind = static_cast<ModuleKind>(module % 4);
      added.format = static_cast<ImageFormat>(module / 4 % 2);
      profile.frames.push_back({start + 0x123, module});
      profile.frames.push_back({start - 1, module});
    }
  }
  profile.frames.push_back({0x7f0000001000, Frame::kNoModule});
  const Symbols symbols = this->Symbolize(symbolizer, profile, "missing files");
  for (const FunctionSymbol& function : symbols.functions)
    EXPECT_FALSE(function.resolved) << function.name;
}

REGISTER_TYPED_TEST_SUITE_P(SymbolizerConformance, AnswersForEveryFrame, AnswersTheSameAgain,
                            MissingFilesCostOnlyNames);

}  // namespace strobe::testing
