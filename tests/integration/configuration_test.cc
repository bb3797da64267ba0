// The environment, as a program meets it: each test runs this executable again, with variables set,
// and reads what it says.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "collecting_exporter.h"
#include "strobe/profiler_from_environment.h"

namespace strobe::testing {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

// The child: a program that sets one option in code, and has a session.
TEST(Child, DISABLED_Program) {
  Profiler profiler({.exporter = {.max_files = 7}});
  for (const OptionRow& row : OptionTable()) {
    std::printf("%s=%s\n", std::string(row.variable).c_str(), row.get(profiler.options()).c_str());
  }
  const ScopedProfiler session(profiler);
  const Registration registration = profiler.RegisterThread("main");
  BurnCpu(20'000'000);
  std::printf("started: %d\nregistered: %d\ndiagnosis: %s\nthe program ran\n",
              session.status().ok(), registration.status().ok(), profiler.Diagnose().c_str());
}

// The same with the switch turned on by code.
TEST(Child, DISABLED_EnabledByCode) {
  Profiler profiler({.enabled = true});
  const ScopedProfiler session(profiler);
  std::printf("started: %d\n", session.status().ok());
}

TEST(Child, DISABLED_TwoProfilers) {
  const Profiler first;
  const Profiler second;
}

TEST(Child, DISABLED_FromEnvironment) {
  const ProfilerFromEnvironment profiler("main");
  EXPECT_FALSE(profiler.status().ok());
}

class Configuration : public ::testing::Test {
 protected:
  // What tests/integration/meson.build sets: each of these would ask for a session.
  void SetUp() override {
    for (const char* const name :
         {"STROBE_EXPORT_PERIOD_S", "STROBE_MAX_OVERHEAD", "STROBE_STOP_TIMEOUT_S"})
      UnsetVariable(name);
  }

  struct Result {
    std::string output;
    std::vector<std::string> errors;  // lines
  };

  using Variables = std::vector<std::pair<std::string, std::string>>;

  Result Run(const Variables& variables, const std::string& child = "Program") {
    for (const auto& [name, value] : variables) SetVariable(name.c_str(), value);
    EXPECT_EQ(
        RunThisProgram(
            {"--gtest_filter=Child.DISABLED_" + child, "--gtest_also_run_disabled_tests"}, root_),
        0);
    for (const auto& [name, value] : variables) UnsetVariable(name.c_str());
    Result result;
    std::ifstream output(root_ / "output");
    result.output.assign(std::istreambuf_iterator<char>(output), {});
    std::ifstream errors(root_ / "errors");
    for (std::string line; std::getline(errors, line);) result.errors.push_back(line);
    EXPECT_THAT(result.output, HasSubstr("OK"));
    return result;
  }

  // How many profiles lie in a directory below root_.
  [[nodiscard]] int Profiles(const std::string& directory) const {
    int count = 0;
    if (!std::filesystem::exists(root_ / directory)) return 0;
    for (const auto& entry : std::filesystem::directory_iterator(root_ / directory))
      count += entry.path().extension() == ".gz" ? 1 : 0;
    return count;
  }

  const TemporaryDirectory temporary_;
  const std::filesystem::path root_ = temporary_.path();
};

TEST_F(Configuration, GoodValuesAreTaken) {
  const Result result = Run({{"STROBE_CPU_FREQUENCY_HZ", "250"},
                             {"STROBE_WALL_FREQUENCY_HZ", "20.5"},
                             {"STROBE_MAX_FRAMES", "64"},
                             {"STROBE_EXPORT_PERIOD_S", "0.5"},
                             {"STROBE_ENABLED", "1"},
                             {"STROBE_OUTPUT_DIRECTORY", "a directory/below"}});
  EXPECT_TRUE(result.errors.empty()) << ::testing::PrintToString(result.errors);
  EXPECT_THAT(
      result.output,
      AllOf(HasSubstr("STROBE_CPU_FREQUENCY_HZ=250\n"),
            HasSubstr("STROBE_WALL_FREQUENCY_HZ=20.5\n"), HasSubstr("STROBE_MAX_FRAMES=64\n"),
            HasSubstr("STROBE_EXPORT_PERIOD_S=0.5\n"), HasSubstr("started: 1\n")));
  EXPECT_GE(Profiles("a directory/below"), 1);
}

TEST_F(Configuration, EachBadValueIsOneLineAndChangesNothing) {
  const Result defaults = Run({{"STROBE_OUTPUT_DIRECTORY", "out"}});
  struct Case {
    std::string variable;
    std::string value;
    std::string accepted;
  };
  for (const Case& bad :
       {Case{"STROBE_CPU_FREQUENCY_HZ", "fast", "a number from 0 to 10000"},
        Case{"STROBE_MAX_FRAMES", "-3", "an integer from 1 to 2048"},
        Case{"STROBE_ENABLED", "maybe", "0 or 1"},
        Case{"STROBE_RING_BYTES", "5000", "a power of two"},
        Case{"STROBE_WALL_FREQUENCY_HZ", "10 ", "a number from 0 to 1000"},
        Case{"STROBE_EXPORT_PERIOD_S", "", "a number from 0.01 to 86400"},
        Case{"STROBE_SIGNAL_NUMBER", "9", "an integer from 0 to 64 other than"}}) {
    const Result result = Run({{"STROBE_OUTPUT_DIRECTORY", "out"}, {bad.variable, bad.value}});
    ASSERT_EQ(result.errors.size(), 1U) << bad.variable << ::testing::PrintToString(result.errors);
    EXPECT_THAT(result.errors[0], AllOf(HasSubstr(bad.variable), HasSubstr("\"" + bad.value + "\""),
                                        HasSubstr(bad.accepted)));
    const std::size_t options_bytes = defaults.output.find("started:");
    EXPECT_EQ(result.output.substr(0, options_bytes), defaults.output.substr(0, options_bytes));
    EXPECT_THAT(result.output, HasSubstr("started: 1\n"));
  }
}

TEST_F(Configuration, SeveralBadValuesAreALineEach) {
  const Result result = Run({{"STROBE_OUTPUT_DIRECTORY", "out"},
                             {"STROBE_MAX_FRAMES", "x"},
                             {"STROBE_MAX_THREADS", "y"},
                             {"STROBE_MAX_FILES", "z"}});
  EXPECT_EQ(result.errors.size(), 3U) << ::testing::PrintToString(result.errors);
}

TEST_F(Configuration, AVariableThatIsNoOptionIsOneLineThatNamesTheNearest) {
  const Result result =
      Run({{"STROBE_OUTPUT_DIRECTORY", "out"}, {"STROBE_CPU_FREQUENCY", "250"}}, "TwoProfilers");
  EXPECT_THAT(result.errors,
              ::testing::ElementsAre("strobe: STROBE_CPU_FREQUENCY is not an "
                                     "option; did you mean STROBE_CPU_FREQUENCY_HZ?"));
  // Not even if nothing else asks for a profiler.
  EXPECT_THAT(Run({{"STROBE_ENABLE", "1"}}, "FromEnvironment").errors,
              ::testing::ElementsAre(
                  "strobe: STROBE_ENABLE is not an option; did you mean STROBE_ENABLED?"));
}

// Those of libraries that this program does not link, and of the command.
TEST_F(Configuration, VariablesOfOtherPartsAreNoMistake) {
  const Result result = Run({{"STROBE_OUTPUT_DIRECTORY", "out"},
                             {"STROBE_PARCA_URL", "http://localhost"},
                             {"STROBE_WORKER_OUTPUT", "files"},
                             {"STROBES", "2"}});
  EXPECT_TRUE(result.errors.empty()) << ::testing::PrintToString(result.errors);
}

TEST_F(Configuration, CodeBeatsTheEnvironment) {
  const Result result = Run({{"STROBE_OUTPUT_DIRECTORY", "out"}, {"STROBE_MAX_FILES", "9"}});
  EXPECT_THAT(result.output, HasSubstr("STROBE_MAX_FILES=7\n"));
  EXPECT_TRUE(result.errors.empty());
}

// This program does not link strobe-worker.
TEST_F(Configuration, AWorkerThatIsNotLinkedIsSaidAndLeftOutIfAsked) {
  const Result none = Run({{"STROBE_OUTPUT_DIRECTORY", "out"}, {"STROBE_WORKER", "1"}});
  EXPECT_THAT(none.output, AllOf(HasSubstr("started: 0\n"), HasSubstr("the program ran\n")));
  ASSERT_EQ(none.errors.size(), 1U) << ::testing::PrintToString(none.errors);
  EXPECT_THAT(none.errors[0], HasSubstr("does not link the library strobe-worker"));
  const Result here = Run({{"STROBE_OUTPUT_DIRECTORY", "out"},
                           {"STROBE_WORKER", "1"},
                           {"STROBE_WORKER_FALLBACK", "in_process"},
                           {"STROBE_EXPORT_PERIOD_S", "3600"}});
  EXPECT_THAT(here.output, HasSubstr("started: 1\n"));
  ASSERT_EQ(here.errors.size(), 1U) << ::testing::PrintToString(here.errors);
  EXPECT_THAT(here.errors[0], HasSubstr("samples in process"));
  EXPECT_EQ(Profiles("out"), 1);
}

TEST_F(Configuration, AnOutputDirectoryThatIsAFileIsRefusedAtTheStart) {
  std::ofstream(root_ / "out") << "a file";
  const Result result = Run({{"STROBE_OUTPUT_DIRECTORY", "out"}});
  EXPECT_THAT(result.output, AllOf(HasSubstr("started: 0\n"), HasSubstr("the program ran\n")));
  ASSERT_EQ(result.errors.size(), 1U) << ::testing::PrintToString(result.errors);
  EXPECT_THAT(result.errors[0],
              AllOf(HasSubstr("cannot start"), HasSubstr((root_ / "out").generic_string()),
                    HasSubstr("STROBE_OUTPUT_DIRECTORY")));
}

TEST_F(Configuration, TheKillSwitchBeatsAll) {
  const Result result = Run({{"STROBE_OUTPUT_DIRECTORY", "out"}, {"STROBE_ENABLED", "0"}});
  EXPECT_THAT(result.output, AllOf(HasSubstr("started: 0\n"), HasSubstr("registered: 0\n"),
                                   HasSubstr("STROBE_ENABLED=0"), HasSubstr("switched off"),
                                   HasSubstr("the program ran\n")));
  // The user that switched it off knows.
  EXPECT_TRUE(result.errors.empty()) << ::testing::PrintToString(result.errors);
  EXPECT_FALSE(std::filesystem::exists(root_ / "out"));
  EXPECT_THAT(Run({{"STROBE_ENABLED", "0"}}, "EnabledByCode").output, HasSubstr("started: 0\n"));
  EXPECT_THAT(Run({{"STROBE_ENABLED", "1"}}, "EnabledByCode").output, HasSubstr("started: 1\n"));
}

// Two options that do not fit together are found at Start; the program goes on, with one line.
TEST_F(Configuration, ValuesThatDoNotFitTogether) {
  const Result result = Run({{"STROBE_OUTPUT_DIRECTORY", "out"},
                             {"STROBE_MAX_FRAMES", "2048"},
                             {"STROBE_RING_BYTES", "4096"}});
  ASSERT_EQ(result.errors.size(), 1U) << ::testing::PrintToString(result.errors);
  EXPECT_THAT(result.errors[0], AllOf(HasSubstr("cannot start"), HasSubstr("threads.ring_bytes")));
  EXPECT_THAT(result.output, AllOf(HasSubstr("started: 0\n"), HasSubstr("the program ran\n")));
}

}  // namespace
}  // namespace strobe::testing
