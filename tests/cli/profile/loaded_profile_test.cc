#include "../../../src/cli/profile/loaded_profile.h"

#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

TEST(LoadedProfileTest, TextsLiveAsLongAsTheProfileWhereverItGoes) {
  LoadedProfile first;
  for (int i = 0; i < 100; ++i) {
    const std::string name = "t" + std::to_string(i);
    first.profile.value_types.push_back({first.Keep(name), first.Keep("a longer text " + name)});
  }
  LoadedProfile second(std::move(first));
  LoadedProfile third;
  third.Keep("another");
  third = std::move(second);
  ASSERT_EQ(third.profile.value_types.size(), 100u);
  for (int i = 0; i < 100; ++i) {
    const std::string name = "t" + std::to_string(i);
    const ValueType& type = third.profile.value_types[static_cast<std::size_t>(i)];
    EXPECT_EQ(type.type, name);
    EXPECT_EQ(type.unit, "a longer text " + name);
  }
}

TEST(LoadedProfileTest, NoCleanTextControlsATerminal) {
  const std::string evil =
      "a\x1B[31m\xC2\x9B"
      "1m\xE2\x80\xAE\n";
  const std::string clean = "a [31m 1m  ";
  LoadedProfile loaded;
  loaded.profile.value_types.push_back({loaded.Keep(evil), loaded.Keep(evil)});
  loaded.profile.period_type = {loaded.Keep(evil), loaded.Keep(evil)};
  loaded.profile.program = evil;
  loaded.profile.modules.push_back({.path = evil, .build_id = evil});
  loaded.profile.zones = {evil};
  loaded.comments = {evil};
  loaded.symbols.functions.push_back({.name = evil, .system_name = evil, .file = evil});
  loaded.symbols.partly_named = evil;
  loaded.CleanTexts();
  const Profile& profile = loaded.profile;
  const FunctionSymbol& function = loaded.symbols.functions[0];
  for (const std::string_view text :
       {profile.value_types[0].type, profile.value_types[0].unit, profile.period_type.type,
        profile.period_type.unit, std::string_view(profile.program),
        std::string_view(profile.modules[0].build_id), std::string_view(profile.zones[0]),
        std::string_view(loaded.comments[0]), std::string_view(function.name),
        std::string_view(function.system_name), std::string_view(function.file),
        std::string_view(loaded.symbols.partly_named)})
    EXPECT_EQ(text, clean);
  EXPECT_EQ(profile.modules[0].path, evil) << "it names a file";
}

TEST(LoadedProfileTest, IsNotCopied) {
  EXPECT_FALSE(std::is_copy_constructible_v<LoadedProfile>);
  EXPECT_FALSE(std::is_copy_assignable_v<LoadedProfile>);
}

TEST(LoadedProfileTest, IterationsAreWhatACommentSays) {
  LoadedProfile loaded;
  EXPECT_EQ(loaded.Iterations(), 0);
  loaded.comments = {"a comment", "strobe: iterations 12.5"};
  EXPECT_EQ(loaded.Iterations(), 12.5);
  loaded.SetIterations(7);
  EXPECT_EQ(loaded.Iterations(), 7);
  EXPECT_EQ(loaded.comments.size(), 2u);
  loaded.comments.push_back("strobe: iterations 8");
  EXPECT_EQ(loaded.Iterations(), 0) << "of a sum that another tool has made";
}

}  // namespace
}  // namespace strobe::internal
