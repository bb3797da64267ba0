#include "../../../src/preload/exec/recorded_environment.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <string>
#include <vector>

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;

using Texts = std::vector<std::string>;

// An array as main gets it.
std::vector<char*> PointersTo(Texts& texts) {
  std::vector<char*> pointers;
  for (std::string& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

// What a program that is executed with the environment gets.
Texts Executed(Texts environment) {
  Texts seen;
  const std::vector<char*> pointers = PointersTo(environment);
  WithRecordedEnvironment(pointers.data(), [&](char* const* recorded) {
    for (; *recorded != nullptr; ++recorded) seen.emplace_back(*recorded);
    return 0;
  });
  return seen;
}

// There is one environment a process: the first is kept.
TEST(RecordedEnvironment, CompletesOneThatHasNothingOfTheRecording) {
  EXPECT_THAT(Executed({"A=1"}), ElementsAre("A=1")) << "before anything is kept";
  const std::string library = ::testing::TempDir() + "ours.so";
  const std::string preload = "LD_PRELOAD=" + library;
  std::ofstream(library).put('x');
  {
    Texts own{"HOME=/", "STROBE_RECORD_SYMBOLS=none", preload + ":/lib/others.so",
              "STROBE_RECORDING=/tmp/folder", "STROBE_MAX_FRAMES=9"};
    KeepRecordedEnvironment(PointersTo(own).data());
  }
  EXPECT_THAT(Executed({}),
              ElementsAre(preload, "STROBE_RECORD_SYMBOLS=none", "STROBE_RECORDING=/tmp/folder"));
  EXPECT_THAT(Executed({"A=1", "LD_PRELOAD=/lib/theirs.so", "B=2"}),
              ElementsAre(preload + ":/lib/theirs.so", "STROBE_RECORD_SYMBOLS=none",
                          "STROBE_RECORDING=/tmp/folder", "A=1", "B=2"));
  EXPECT_THAT(Executed({"STROBE_RECORDING=/tmp/folder"}),
              ElementsAre("STROBE_RECORDING=/tmp/folder"))
      << "who takes the library away wants that";
  std::remove(library.c_str());
  EXPECT_THAT(Executed({"A=1"}), ElementsAre("A=1")) << "where the library is not";
  const std::string long_preload = "LD_PRELOAD=" + std::string(kPreloadBytes, 'x');
  EXPECT_THAT(Executed({long_preload}), ElementsAre(long_preload)) << "beyond a limit";
  EXPECT_EQ(WithRecordedEnvironment(nullptr, [](char* const* none) { return none == nullptr; }), 1);
}

}  // namespace
}  // namespace strobe::internal
