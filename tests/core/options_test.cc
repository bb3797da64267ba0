#include "strobe/core/options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <concepts>
#include <limits>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "strobe/core/stack.h"

namespace strobe {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using enum OptionSource;

struct Applied {
  ProfilerOptions options;
  std::vector<std::string> warnings;
};

Applied Apply(ProfilerOptions options, const std::map<std::string, std::string>& environment) {
  Applied applied{std::move(options), {}};
  ApplyEnvironment(
      applied.options,
      [&](const char* name) {
        const auto found = environment.find(name);
        return found == environment.end() ? std::nullopt : std::optional(found->second);
      },
      [&](const std::string& line) { applied.warnings.push_back(line); });
  return applied;
}

TEST(Options, DefaultsAreValidAndAcceptedAsText) {
  ProfilerOptions options;
  EXPECT_TRUE(Validate(options).ok()) << Validate(options);
  for (const OptionRow& row : OptionTable()) {
    EXPECT_TRUE(row.valid(options)) << row.variable;
    EXPECT_TRUE(row.set(options, row.get(options), kEnvironment))
        << row.variable << " refuses its own default " << row.get(options);
  }
}

TEST(Options, EveryVariableHasANameOfItsOwnAndReachesAField) {
  // A text that differs from the default and that the option accepts.
  const std::map<std::string, std::string> other = {
      {"STROBE_ENABLED", "0"},
      {"STROBE_CPU_FREQUENCY_HZ", "99.5"},
      {"STROBE_WALL_FREQUENCY_HZ", "10"},
      {"STROBE_MAX_FRAMES", "64"},
      {"STROBE_SIGNAL_NUMBER", "27"},
      {"STROBE_TOGGLE_SIGNAL", "12"},
      {"STROBE_UNBLOCK_SIGNAL", "1"},
      {"STROBE_TRIGGER", "random"},
      {"STROBE_MAX_OVERHEAD", "0.01"},
      {"STROBE_TIMESTAMPS", "1"},
      {"STROBE_MAX_THREADS", "10"},
      {"STROBE_RING_BYTES", "65536"},
      {"STROBE_LEAST_STACK_BYTES", "32768"},
      {"STROBE_RINGS_IN_CORES", "1"},
      {"STROBE_FOLLOW_FORKS", "1"},
      {"STROBE_DRAIN_PERIOD_MS", "20"},
      {"STROBE_MEMORY_BYTES", "2097152"},
      {"STROBE_ZONE_FRAMES", "1"},
      {"STROBE_KEEP_LAST_S", "30"},
      {"STROBE_KEEP_DUMP_SIGNAL", "10"},
      {"STROBE_KEEP_CPU_PERCENT", "150"},
      {"STROBE_KEEP_CPU_S", "2.5"},
      {"STROBE_KEEP_MEMORY_BYTES", "1000000"},
      {"STROBE_KEEP_MEMORY_GROWTH_BYTES", "2000000"},
      {"STROBE_KEEP_SLOW_SPANS", "1"},
      {"STROBE_SYMBOLS", "full"},
      {"STROBE_SYMBOL_TIME_S", "0.25"},
      {"STROBE_SYMBOL_MEMORY_BYTES", "1048576"},
      {"STROBE_DEBUG_DIRECTORIES", "/a:/b"},
      {"STROBE_OUTPUT_DIRECTORY", "/tmp/p"},
      {"STROBE_EXPORT_PERIOD_S", "0.5"},
      {"STROBE_MAX_FILES", "3"},
      {"STROBE_MAX_FILE_BYTES", "4096"},
      {"STROBE_STOP_TIMEOUT_S", "2.25"},
      {"STROBE_STOP_AT_EXIT", "0"},
      {"STROBE_EXPORT_ON_SIGNAL", "1"},
      {"STROBE_MACHINE_TAGS", "0"},
      {"STROBE_WORKER", "1"},
      {"STROBE_WORKER_COMMAND", "/usr/bin/strobe"},
      {"STROBE_WORKER_SOCKET", "/run/user/1000/strobe/worker.sock"},
      {"STROBE_WORKER_FALLBACK", "in_process"},
  };
  std::set<std::string_view> variables;
  std::set<std::string_view> fields;
  for (const OptionRow& row : OptionTable()) {
    EXPECT_TRUE(variables.insert(row.variable).second) << row.variable;
    EXPECT_TRUE(fields.insert(row.field).second) << row.field;
    ASSERT_TRUE(other.contains(std::string(row.variable))) << row.variable;
    const std::string text = other.at(std::string(row.variable));
    const Applied applied = Apply({}, {{std::string(row.variable), text}});
    EXPECT_THAT(applied.warnings, IsEmpty());
    // The one option changed, and no other.
    for (const OptionRow& each : OptionTable()) {
      EXPECT_EQ(each.get(applied.options), each.variable == row.variable ? text : each.get({}))
          << row.variable << " on " << each.field;
    }
  }
  EXPECT_EQ(variables.size(), other.size());
}

TEST(Options, WhatWritesTheLastSecondsNeedsThatTheyAreKept) {
  EXPECT_TRUE(Validate({.keep = {.last_s = 30, .dump_signal = 10, .cpu_percent = 90}}).ok());
  for (const KeepOptions& keep :
       {KeepOptions{.dump_signal = 10}, KeepOptions{.cpu_percent = 90},
        KeepOptions{.memory_bytes = 1}, KeepOptions{.memory_growth_bytes = 1},
        KeepOptions{.slow_spans = true}})
    EXPECT_THAT(std::string(Validate({.keep = keep}).message()), HasSubstr("keep.last_s is 0"));
  const ProfilerOptions twice{.sampling = {.toggle_signal = 12},
                              .keep = {.last_s = 30, .dump_signal = 12}};
  EXPECT_EQ(Validate(twice).message(), "keep.dump_signal is 12, as is sampling.toggle_signal");
}

TEST(Options, CodeBeatsEnvironmentBeatsDefault) {
  const ProfilerOptions code{.sampling = {.cpu_frequency_hz = 50},
                             .exporter = {.directory = "code"}};
  const Applied applied = Apply(code, {{"STROBE_CPU_FREQUENCY_HZ", "200"},
                                       {"STROBE_OUTPUT_DIRECTORY", "variable"},
                                       {"STROBE_MAX_FRAMES", "32"}});
  EXPECT_THAT(applied.warnings, IsEmpty());
  EXPECT_EQ(*applied.options.sampling.cpu_frequency_hz, 50);
  EXPECT_EQ(*applied.options.exporter.directory, "code");
  EXPECT_EQ(*applied.options.sampling.max_frames, 32);
  EXPECT_EQ(*applied.options.threads.ring_bytes, 32768);
}

TEST(Options, EnvironmentCanBeAppliedAgain) {
  ProfilerOptions options = Apply({}, {{"STROBE_MAX_FRAMES", "32"}}).options;
  EXPECT_EQ(*Apply(options, {{"STROBE_MAX_FRAMES", "16"}}).options.sampling.max_frames, 16);
}

TEST(Options, TheSwitchTurnedOffBeatsCode) {
  EXPECT_FALSE(*Apply({.enabled = true}, {{"STROBE_ENABLED", "0"}}).options.enabled);
  EXPECT_FALSE(*Apply({.enabled = true}, {{"STROBE_ENABLED", "false"}}).options.enabled);
  EXPECT_FALSE(*Apply({.enabled = false}, {{"STROBE_ENABLED", "1"}}).options.enabled);
  EXPECT_TRUE(*Apply({}, {{"STROBE_ENABLED", "1"}}).options.enabled);
}

TEST(Options, ValuesThatCannotBeReadAreNamedAndChangeNothing) {
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"STROBE_ENABLED", "maybe"},
      {"STROBE_ENABLED", ""},
      {"STROBE_CPU_FREQUENCY_HZ", "fast"},
      {"STROBE_CPU_FREQUENCY_HZ", "100Hz"},
      {"STROBE_CPU_FREQUENCY_HZ", "-1"},
      {"STROBE_CPU_FREQUENCY_HZ", "inf"},
      {"STROBE_CPU_FREQUENCY_HZ", "nan"},
      {"STROBE_CPU_FREQUENCY_HZ", "1e999"},
      {"STROBE_CPU_FREQUENCY_HZ", " 100"},
      {"STROBE_CPU_FREQUENCY_HZ", "100 "},
      {"STROBE_MAX_FRAMES", "0"},
      {"STROBE_MAX_FRAMES", "2049"},
      {"STROBE_MAX_FRAMES", "12.5"},
      {"STROBE_MAX_FRAMES", "0x10"},
      {"STROBE_MAX_FRAMES", "99999999999999999999"},
      {"STROBE_SIGNAL_NUMBER", "9"},
      {"STROBE_SIGNAL_NUMBER", "19"},
      {"STROBE_SIGNAL_NUMBER", "11"},
      {"STROBE_SIGNAL_NUMBER", "65"},
      {"STROBE_RING_BYTES", "5000"},
      {"STROBE_RING_BYTES", "2048"},
      {"STROBE_OUTPUT_DIRECTORY", ""},
      {"STROBE_OUTPUT_DIRECTORY", std::string(5000, 'd')},
      {"STROBE_EXPORT_PERIOD_S", "0"},
  };
  for (const auto& [variable, value] : refused) {
    const Applied applied = Apply({}, {{variable, value}});
    ASSERT_EQ(applied.warnings.size(), 1u) << variable << "=" << value;
    for (const OptionRow& row : OptionTable()) {
      EXPECT_EQ(row.get(applied.options), row.get({})) << variable << "=" << value;
      if (row.variable == variable) {
        EXPECT_THAT(applied.warnings[0], AllOf(HasSubstr(variable), HasSubstr(value.substr(0, 100)),
                                               HasSubstr(std::string(row.accepted))));
      }
    }
  }
}

TEST(Options, AWarningIsOneLineWhateverTheValue) {
  const Applied applied =
      Apply({}, {{"STROBE_MAX_FRAMES", "1\n2\033[31m\xff" + std::string(10000, 'x')}});
  ASSERT_EQ(applied.warnings.size(), 1u);
  EXPECT_THAT(applied.warnings[0], Not(HasSubstr("\n")));
  EXPECT_THAT(applied.warnings[0], Not(HasSubstr("\033")));
  EXPECT_LT(applied.warnings[0].size(), 300u);
}

TEST(Options, ATextOfTheCodeBeatsTheEnvironment) {
  for (const OptionRow& row : OptionTable()) {
    ProfilerOptions options;
    const std::string value = row.get(options);
    ASSERT_TRUE(row.set(options, value, kCode)) << row.variable;
    if (row.variable == "STROBE_ENABLED") continue;  // whose 0 beats the code
    for (const char* other : {"1", "0.5", "2097152", "random", "full"})
      static_cast<void>(row.set(options, other, kEnvironment));
    EXPECT_EQ(row.get(options), value) << row.variable;
  }
  ProfilerOptions options;
  for (const OptionRow& row : OptionTable()) {
    if (row.variable != "STROBE_ENABLED") continue;
    ASSERT_TRUE(row.set(options, "0", kCode));
    ASSERT_TRUE(row.set(options, "1", kEnvironment));
    EXPECT_FALSE(*options.enabled) << "the code has switched it off";
    ASSERT_TRUE(row.set(options, "1", kCode));
    ASSERT_TRUE(row.set(options, "0", kEnvironment));
    EXPECT_FALSE(*options.enabled) << "0 beats the code";
  }
}

TEST(Options, TheWordsOfEachRangeAreItsBounds) {
  for (const OptionRow& row : OptionTable()) {
    const std::string accepted(row.accepted);
    const std::size_t from = accepted.find(" from ");
    if (from == std::string::npos) continue;
    const std::size_t to = accepted.find(" to ", from);
    ASSERT_NE(to, std::string::npos) << accepted;
    const std::string least = accepted.substr(from + 6, to - from - 6);
    const std::string most = accepted.substr(to + 4, accepted.find(' ', to + 4) - to - 4);
    ProfilerOptions options;
    EXPECT_TRUE(row.set(options, least, kEnvironment)) << row.variable << " " << least;
    EXPECT_TRUE(row.set(options, most, kEnvironment)) << row.variable << " " << most;
    // A thousandth for numbers, one for integers and the next power for powers of two are all
    // beyond the bounds.
    const double beyond_least =
        row.accepted.starts_with("a number") ? std::stod(least) - 0.001 : std::stod(least) / 2 - 1;
    const double beyond_most =
        row.accepted.starts_with("a power") ? std::stod(most) * 2 : std::stod(most) + 1;
    EXPECT_FALSE(
        row.set(options, std::to_string(static_cast<long long>(beyond_most)), kEnvironment))
        << row.variable << " " << beyond_most;
    EXPECT_FALSE(row.set(options,
                         row.accepted.starts_with("a number")
                             ? std::to_string(beyond_least)
                             : std::to_string(static_cast<long long>(beyond_least)),
                         kEnvironment))
        << row.variable << " " << beyond_least;
  }
}

TEST(Options, ValidateNamesTheFieldAndTheValue) {
  const auto message = [](const ProfilerOptions& options) {
    return std::string(Validate(options).message());
  };
  EXPECT_EQ(Validate({.sampling = {.cpu_frequency_hz = -1}}).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(message({.sampling = {.cpu_frequency_hz = 20000}}),
              AllOf(HasSubstr("sampling.cpu_frequency_hz"), HasSubstr("20000")));
  EXPECT_THAT(
      message({.sampling = {.wall_frequency_hz = std::numeric_limits<double>::quiet_NaN()}}),
      HasSubstr("wall_frequency_hz"));
  EXPECT_THAT(message({.sampling = {.wall_frequency_hz = std::numeric_limits<double>::infinity()}}),
              HasSubstr("wall_frequency_hz"));
  EXPECT_THAT(message({.sampling = {.signal_number = 9}}), HasSubstr("sampling.signal_number"));
  EXPECT_THAT(message({.exporter = {.directory = ""}}), HasSubstr("exporter.directory"));
  EXPECT_THAT(message({.exporter = {.directory = std::string("a\0b", 3)}}),
              HasSubstr("exporter.directory"));
  EXPECT_THAT(message({.threads = {.max_threads = 0}}), HasSubstr("threads.max_threads"));
}

TEST(Options, TheToggleSignalHasANumberOrAName) {
  for (const char* text : {"12", "USR2", "SIGUSR2"}) {
    const Applied applied = Apply({}, {{"STROBE_TOGGLE_SIGNAL", text}});
    EXPECT_EQ(*applied.options.sampling.toggle_signal, 12) << text;
    EXPECT_THAT(applied.warnings, IsEmpty());
  }
  for (const char* text : {"9", "KILL", "usr2", "SIG12", "SEGV", "65", "-1"}) {
    const Applied applied = Apply({}, {{"STROBE_TOGGLE_SIGNAL", text}});
    EXPECT_EQ(*applied.options.sampling.toggle_signal, 0) << text;
    EXPECT_EQ(applied.warnings.size(), 1u) << text;
  }
  EXPECT_THAT(
      std::string(Validate({.sampling = {.signal_number = 12, .toggle_signal = 12}}).message()),
      HasSubstr("sampling.toggle_signal"));
}

TEST(Options, TheRingMustHoldTwoOfTheLongestStacks) {
  EXPECT_FALSE(Validate({.threads = {.ring_bytes = 4096}}).ok());
  EXPECT_TRUE(Validate({.sampling = {.max_frames = 64}, .threads = {.ring_bytes = 4096}}).ok());
  const absl::Status status = Validate({.sampling = {.max_frames = 2048}});
  EXPECT_THAT(
      std::string(status.message()),
      AllOf(HasSubstr("threads.ring_bytes"), HasSubstr("sampling.max_frames"), HasSubstr("65536")));
  EXPECT_TRUE(Validate({.sampling = {.max_frames = 2048}, .threads = {.ring_bytes = 65536}}).ok());
}

TEST(Option, RefusesWhatWouldChangeInSilence) {
  static_assert(!std::constructible_from<Option<bool>, const char*>);
  static_assert(!std::constructible_from<Option<bool>, int>);
  static_assert(!std::constructible_from<Option<std::int64_t>, double>);
  static_assert(std::constructible_from<Option<std::int64_t>, std::size_t>);
  static_assert(std::constructible_from<Option<double>, int>);
  static_assert(std::constructible_from<Option<std::string>, const char*>);
}

TEST(Option, KnowsWhetherCodeChoseIt) {
  Option<std::int64_t> option = Option<std::int64_t>::Default{7};
  EXPECT_FALSE(option.is_set());
  option = 7;
  EXPECT_TRUE(option.is_set());
  EXPECT_EQ(*option, 7);
}

}  // namespace
}  // namespace strobe
