#include "strobe/runtime/control/diagnosis.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

// A profiler with which all is well.
DiagnosisFacts Healthy() {
  DiagnosisFacts facts;
  facts.was_started = facts.is_running = true;
  facts.handler = HandlerState::kOurs;
  facts.signal = 23;
  facts.stats.threads_registered = 2;
  facts.stats.samples = 100;
  facts.stats.exports = 3;
  facts.stats.outputs.resize(1);
  return facts;
}

TEST(Diagnosis, SaysThatAllIsWellOnlyThen) {
  EXPECT_EQ(Diagnose(Healthy()), "All is well: 2 threads, 100 samples, 3 exports, by signal 23.");
}

TEST(Diagnosis, SaysAtTheEndWhoHasSetWhichOption) {
  DiagnosisFacts facts = Healthy();
  facts.given_options = {"sampling.cpu_frequency_hz=250 by code",
                         "exporter.period_s=5 by STROBE_EXPORT_PERIOD_S"};
  EXPECT_THAT(Diagnose(facts),
              EndsWith("by signal 23.\nOptions that are not the defaults: "
                       "sampling.cpu_frequency_hz=250 by code; exporter.period_s=5 by "
                       "STROBE_EXPORT_PERIOD_S."));
}

TEST(Diagnosis, EachFactHasItsSentence) {
  struct Case {
    void (*set)(DiagnosisFacts&);
    const char* sentence;
  };
  for (const Case& one : {
           Case{[](DiagnosisFacts& f) { f.available = absl::UnimplementedError("no such CPU"); },
                "Profiling cannot work here: no such CPU."},
           Case{[](DiagnosisFacts& f) { f.options.enabled = false; },
                "switched off: by STROBE_ENABLED=0"},
           Case{[](DiagnosisFacts& f) {
                  f.last_start = absl::InvalidArgumentError("max_frames is 0");
                },
                "The last Start failed: max_frames is 0."},
           Case{[](DiagnosisFacts& f) { f.was_started = f.is_running = false; }, "never started"},
           Case{[](DiagnosisFacts& f) { f.is_running = false; },
                "The profiler is stopped. It has taken 100 samples, and exported 3 profiles."},
           Case{[](DiagnosisFacts& f) { f.options.sampling = {.cpu_frequency_hz = 0}; },
                "Both built-in providers are off"},
           Case{[](DiagnosisFacts& f) { f.stats.threads_registered = 0; },
                "No thread is registered: only"},
           Case{[](DiagnosisFacts& f) {
                  f.stats.threads_registered = 0;
                  f.stats.threads_ended = 4;
                },
                "No thread is registered now: 4 threads were registered and have ended."},
           Case{[](DiagnosisFacts& f) {
                  f.unregistered = {.share = 0.83, .count = 2, .names = "a, b"};
                  f.stats.unregistered = {.share = 0.5, .count = 1, .names = "c"};
                },
                "83 % of the process's CPU time so far was in threads that are not registered (2 "
                "threads: a, b): call RegisterThread in each."},
           Case{[](DiagnosisFacts& f) {
                  f.stats.unregistered = {.share = 0.5, .count = 1, .names = "c"};
                },
                "50 % of the process's CPU time in the last period was in threads that are not "
                "registered (1 thread: c): call RegisterThread in each."},
           Case{[](DiagnosisFacts& f) {
                  f.stats.stack_ends = {150, 10, 800, 30, 10};
                },
                "84 % of 1000 stacks are cut: 800 are broken, 30 come to code without unwind "
                "information, 10 are too deep. Code needs"},
           Case{[](DiagnosisFacts& f) {
                  f.stats.stack_ends = {150, 800, 10, 30, 10};
                },
                "10 are broken, 30 come to code"},
           Case{[](DiagnosisFacts& f) {
                  f.stats.stack_ends = {150, 800, 10, 30, 10};
                },
                "A larger sampling.max_frames helps."},
           Case{[](DiagnosisFacts& f) { f.stats.threads_refused = 7; },
                "7 registrations were refused"},
           Case{[](DiagnosisFacts& f) {
                  f.options.sampling.trigger = SampleTrigger::kTimers;
                  f.stats.threads_at_instants = 4;
                },
                "refused the CPU timers of 4 threads (RLIMIT_SIGPENDING"},
           Case{[](DiagnosisFacts& f) {
                  f.options.sampling.trigger = SampleTrigger::kPerf;
                  f.stats.threads_at_instants = 4;
                },
                "refused the perf events of 4 threads"},
           Case{[](DiagnosisFacts& f) { f.stats.waits_hidden = 5; },
                "5 interruptions may have ended a wait early"},
           Case{[](DiagnosisFacts& f) { f.threads_given_up = 3; },
                "3 threads are not sampled any more"},
           Case{[](DiagnosisFacts& f) { f.handler = HandlerState::kReplaced; },
                "has replaced the handler of signal 23"},
           Case{[](DiagnosisFacts& f) {
                  f.stats.drops[static_cast<std::size_t>(DropReason::kRingFull)] = 9;
                },
                "9 samples found their ring full"},
           Case{[](DiagnosisFacts& f) {
                  f.stats.drops[static_cast<std::size_t>(DropReason::kNoRegisters)] = 8;
                },
                "8 signals came without the thread's registers"},
           Case{[](DiagnosisFacts& f) {
                  f.stats.drops[static_cast<std::size_t>(DropReason::kUnreadable)] = 5;
                },
                "5 records could not be read"},
           Case{[](DiagnosisFacts& f) { f.stats.partly_named_module = "/lib/x"; },
                "/lib/x has more functions, or longer names, than"},
           Case{[](DiagnosisFacts& f) { f.stats.unread_module = "/lib/x"; },
                "The frame information of /lib/x could not be read"},
           Case{[](DiagnosisFacts& f) { f.stats.stacks_overflowed = 6; },
                "6 samples went into [overflow]"},
           Case{[](DiagnosisFacts& f) { f.stats.threads_unlisted = 7; },
                "7 threads have neither times nor CPU time in their profiles"},
           Case{[](DiagnosisFacts& f) { f.stats.samples = 0; }, "there is no sample yet"},
           Case{[](DiagnosisFacts& f) { f.stats.outputs[0].last_export_error = "disk full"; },
                "The last export failed: disk full."},
           Case{[](DiagnosisFacts& f) { f.stats.outputs[0].exports_dropped = 2; },
                "2 profiles were never delivered"},
       }) {
    DiagnosisFacts facts = Healthy();
    one.set(facts);
    const std::string text = Diagnose(facts);
    EXPECT_THAT(text, HasSubstr(one.sentence));
    EXPECT_THAT(text, Not(HasSubstr("All is well")));
    EXPECT_THAT(text, Not(HasSubstr("\n"))) << "one fact, one line";
  }
}

TEST(Diagnosis, NamesTheOutputOfSeveral) {
  DiagnosisFacts facts = Healthy();
  facts.stats.outputs.resize(2);
  facts.stats.outputs[0].name = "output 1 (.pb.gz)";
  facts.stats.outputs[1].name = "output 2 (.txt)";
  facts.stats.outputs[1].last_export_error = "no answer";
  facts.stats.outputs[1].exports_dropped = 4;
  const std::string text = Diagnose(facts);
  EXPECT_THAT(text, HasSubstr("The last export to output 2 (.txt) failed: no answer."));
  EXPECT_THAT(text, HasSubstr("4 profiles were never delivered to output 2 (.txt)"));
  EXPECT_THAT(text, Not(HasSubstr("output 1")));
}

TEST(Diagnosis, SpeaksOfWhatWas) {
  DiagnosisFacts facts = Healthy();
  facts.stats.threads_ended = 5;
  EXPECT_EQ(Diagnose(facts),
            "All is well: 2 threads and 5 that have ended, 100 samples, 3 exports, by signal 23.");
}

TEST(Diagnosis, AFewCutStacksNeedNoAdvice) {
  DiagnosisFacts facts = Healthy();
  facts.stats.stack_ends = {940, 10, 20, 20, 10};
  EXPECT_THAT(Diagnose(facts), StartsWith("All is well"));
  facts.stats.stack_ends = {0, 0, 19, 0, 0};
  EXPECT_THAT(Diagnose(facts), StartsWith("All is well")) << "too few to tell";
}

TEST(Diagnosis, WhatWaitsForATableNeedsNoAdvice) {
  DiagnosisFacts facts = Healthy();
  facts.stats.drops[static_cast<std::size_t>(DropReason::kNoTable)] = 9;
  EXPECT_THAT(Diagnose(facts), StartsWith("All is well"));
}

TEST(Diagnosis, TheMostDecisiveComesFirst) {
  DiagnosisFacts facts = Healthy();
  facts.stats.stacks_overflowed = 6;
  facts.stats.threads_registered = 0;
  facts.options.enabled = false;
  facts.available = absl::UnimplementedError("no such CPU");
  const std::string text = Diagnose(facts);
  EXPECT_THAT(text, StartsWith("Profiling cannot work here"));
  EXPECT_LT(text.find("switched off"), text.find("No thread is registered"));
  EXPECT_LT(text.find("No thread is registered"), text.find("[overflow]"));
}

TEST(Diagnosis, WhatIsSwitchedOffIsNotAlsoCalledNeverStarted) {
  DiagnosisFacts facts = Healthy();
  facts.options.enabled = false;
  facts.was_started = facts.is_running = false;
  EXPECT_THAT(Diagnose(facts), Not(HasSubstr("never started")));
}

}  // namespace
}  // namespace strobe::internal
