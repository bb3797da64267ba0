#include "../../../src/cli/perf/perf_account.h"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "../../../src/cli/perf/proc_files.h"
#include "../made_profile.h"
#include "../perf_bytes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "process/fake_image.h"
#include "strobe/platform/native.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;

constexpr std::uint16_t kFromUser = 2;
constexpr std::uint16_t kFromKernel = 1;

// Events whose samples have an identifier, an address, a thread, a time and a period.
class PerfAccountTest : public ::testing::Test {
 protected:
  static constexpr std::uint64_t kFields =
      kPerfIdentifier | kPerfIp | kPerfThread | kPerfTime | kPerfPeriod;

  // The events' ids are 10, 11, ...
  void AddEvent(std::uint32_t type, std::uint64_t config) {
    const AttributeBytes attributes{
        .type = type, .config = config, .sample_type = kFields, .flags = kIdsInAllFlag};
    const std::uint64_t id = 10 + header_.events.size();
    ASSERT_TRUE(header_.AddEvent(AsBytes(attributes.All()), AsBytes(Word(id))).ok());
  }
  absl::Status Sample(std::uint64_t id, std::uint32_t thread, std::uint64_t time,
                      std::uint64_t period, Address ip = 0x1000, std::uint16_t misc = kFromUser) {
    return SampleOf(42, id, thread, time, period, ip, misc);
  }
  absl::Status SampleOf(std::uint32_t process, std::uint64_t id, std::uint32_t thread,
                        std::uint64_t time, std::uint64_t period, Address ip = 0x1000,
                        std::uint16_t misc = kFromUser) {
    const Bytes body =
        Join({Words({id, ip}), HalfWord(process), HalfWord(thread), Words({time, period})});
    return account_.Take(RecordOf(PerfRecordType::kSample, body, misc), time);
  }
  void Take(PerfRecordType type, const Bytes& body, std::uint64_t time = 0) {
    EXPECT_TRUE(account_.Take(RecordOf(type, body), time).ok());
  }
  // What a record that is no sample ends with.
  static Bytes Trailer(std::uint32_t thread, std::uint64_t time) {
    return Join({HalfWord(42), HalfWord(thread), Words({time, 10})});
  }
  LoadedProfile Finish() {
    absl::StatusOr<LoadedProfile> loaded = account_.Finish();
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? *std::move(loaded) : LoadedProfile();
  }

  testing::FakeFiles files_;
  PerfHeader header_;
  PerfAccount account_{header_, files_, {}, ""};
};

// Samples of a tracepoint, whatever their period is, with a number of 4 bytes in their raw data.
TEST_F(PerfAccountTest, ATracepointsFieldIsTheAmount) {
  const AttributeBytes attributes{.type = PerfEvent::kTracepoint,
                                  .config = 7,
                                  .period = 3,
                                  .sample_type = kPerfIp | kPerfThread | kPerfTime | kPerfRaw};
  ASSERT_TRUE(header_.AddEvent(AsBytes(attributes.All()), {}).ok());
  header_.events[0].name = "made:up/bytes";
  header_.events[0].field = TracepointField{.offset = 2, .bytes = 4, .is_signed = true};
  const auto sample = [&](const Bytes& raw) {
    const Bytes body = Join({Word(0x1000), HalfWord(42), HalfWord(42), Word(5),
                             HalfWord(static_cast<std::uint32_t>(raw.size())), raw});
    return account_.Take(RecordOf(PerfRecordType::kSample, body, kFromUser), 5);
  };
  EXPECT_TRUE(sample({0xFF, 0xFF, 100, 0, 0, 0, 0xFF, 0xFF}).ok());
  EXPECT_TRUE(sample({0, 0, 1, 1, 0, 0, 0, 0}).ok());
  EXPECT_TRUE(sample({0, 0, 0xFE, 0xFF, 0xFF, 0xFF, 0, 0}).ok()) << "below 0 counts as 0";
  EXPECT_FALSE(sample({0, 0, 1, 1}).ok());
  const LoadedProfile loaded = Finish();
  EXPECT_THAT(loaded.profile.value_types,
              ElementsAre(ValueType{"samples", "count"}, ValueType{"made:up/bytes", "bytes"}));
  std::int64_t samples = 0;
  std::int64_t amount = 0;
  for (std::size_t i = 0; i < loaded.profile.samples.size(); ++i) {
    samples += loaded.profile.Values(i)[0];
    amount += loaded.profile.Values(i)[1];
  }
  EXPECT_EQ(samples, 3);
  EXPECT_EQ(amount, 100 + 257);
}

TEST_F(PerfAccountTest, EachEventHasAColumnAndACountOfItsSamples) {
  AddEvent(PerfEvent::kHardware, 0);
  AddEvent(PerfEvent::kSoftware, 1);
  AddEvent(PerfEvent::kSoftware, 9);  // perf's own, without samples
  AddEvent(PerfEvent::kSoftware, 2);
  header_.events[0].name = "cycles:u";
  EXPECT_FALSE(account_.has_columns());
  EXPECT_TRUE(Sample(10, 42, 5, 100).ok());
  EXPECT_TRUE(account_.has_columns());
  EXPECT_TRUE(Sample(11, 42, 6, 1000).ok());
  EXPECT_TRUE(Sample(13, 42, 7, 1).ok());
  const LoadedProfile loaded = Finish();
  EXPECT_THAT(
      loaded.profile.value_types,
      ElementsAre(ValueType{"samples", "count"}, ValueType{"cycles", "count"},
                  ValueType{"cpu_samples", "count"}, ValueType{"cpu", "nanoseconds"},
                  ValueType{"page-faults_samples", "count"}, ValueType{"page-faults", "count"}));
  EXPECT_EQ(loaded.profile.default_value_type, 1u);
  EXPECT_THAT(RowsOf(loaded), ElementsAre("? 1 100 1 1000 1 1"));
}

TEST_F(PerfAccountTest, AnEventOfWhichEachHasASampleNeedsNoCount) {
  AddEvent(PerfEvent::kSoftware, 1);
  AddEvent(PerfEvent::kSoftware, 2);
  header_.events[1].period = 1;
  EXPECT_TRUE(Sample(10, 42, 5, 1000).ok());
  for (int i = 0; i < 30; ++i) EXPECT_TRUE(Sample(11, 42, 6, 1).ok());
  const LoadedProfile loaded = Finish();
  EXPECT_THAT(loaded.profile.value_types,
              ElementsAre(ValueType{"samples", "count"}, ValueType{"cpu", "nanoseconds"},
                          ValueType{"page-faults", "count"}));
  EXPECT_THAT(RowsOf(loaded), ElementsAre("? 1 1000 30"));
}

TEST_F(PerfAccountTest, AProcessThatSamplesItselfIsLeftOutUntilItExecutes) {
  constexpr std::uint16_t kExecBit = 1 << 13;
  AddEvent(PerfEvent::kSoftware, 1);
  account_.LeaveOut("libours");
  EXPECT_TRUE(Sample(10, 42, 5, 1000).ok());
  Take(PerfRecordType::kMmap2, MapBody(42, 0x5000, 0x1000, 0, "/lib/libours-more.so"), 6);
  Take(PerfRecordType::kFork, ForkBody(43, 42, 43, 42), 7);
  EXPECT_TRUE(Sample(10, 42, 8, 1000).ok());
  EXPECT_TRUE(SampleOf(43, 10, 43, 8, 1000).ok()) << "what it has forked";
  EXPECT_TRUE(SampleOf(44, 10, 44, 8, 1000).ok()) << "another process";
  const Bytes name = NameBody(42, 42, "next");
  EXPECT_TRUE(account_.Take(RecordOf(PerfRecordType::kComm, name, kExecBit), 9).ok());
  EXPECT_TRUE(Sample(10, 42, 10, 1000).ok());
  // What was counted includes the others' part, whose size is unknown.
  account_.SetTotals(std::vector<PerfAccount::Total>{{.amount = 9000}});
  const LoadedProfile loaded = Finish();
  EXPECT_THAT(RowsOf(loaded), ElementsAre("? 1 1000", "? 1 1000", "? 1 1000"));
  for (const std::size_t row : {0, 1, 2})
    EXPECT_NE(loaded.profile.Labels(row).Number(PerfThreads::kProcessLabel), 0);
}

TEST_F(PerfAccountTest, WhatIsLostOfAProcessThatIsLeftOutIsNotLost) {
  constexpr std::uint32_t kOther = 0x3FFFFFFE;  // none of this machine's
  constexpr std::uint32_t kLeftOut = 0x3FFFFFFF;
  AddEvent(PerfEvent::kSoftware, 1);
  account_.LeaveOut("libours");
  EXPECT_TRUE(SampleOf(kOther, 10, kOther, 5, 1000).ok());
  Take(PerfRecordType::kMmap2, MapBody(kLeftOut, 0x5000, 0x1000, 0, "/lib/libours.so"), 6);
  const auto lose = [this](std::uint32_t process, std::uint64_t count) {
    const Bytes of = Join({HalfWord(process), HalfWord(process), Words({7, 10})});
    Take(PerfRecordType::kLost, Join({Words({10, count}), of}), 7);
  };
  lose(kLeftOut, 30);
  lose(kOther, 10);
  account_.SetTotals(std::vector<PerfAccount::Total>{{.lost = 38, .amount = 90'000}});
  EXPECT_EQ(account_.counts().lost, 10u);
  EXPECT_THAT(RowsOf(Finish()), ElementsAre("? 1 1000", "[lost] 10 10000"));
}

TEST_F(PerfAccountTest, AfterALossProcSaysWhetherAProcessSamplesItself) {
  if (!IsProcOwn()) GTEST_SKIP() << "there is no /proc";
  AddEvent(PerfEvent::kSoftware, 1);
  const auto own = static_cast<std::uint32_t>(NativePlatform::ProcessId());
  account_.LeaveOut("libc.so");  // this process has it, and no record has said so
  EXPECT_TRUE(SampleOf(own, 10, own, 5, 1000).ok());
  EXPECT_EQ(account_.counts().samples, 1u);
  const Bytes of = Join({HalfWord(42), HalfWord(42), Words({6, 10})});
  Take(PerfRecordType::kLost, Join({Words({10, 3}), of}), 6);
  EXPECT_TRUE(SampleOf(own, 10, own, 7, 1000).ok());
  EXPECT_EQ(account_.counts().samples, 1u);
}

TEST_F(PerfAccountTest, AProcessThatRunsAlreadyIsNotWhatItsIdWasBefore) {
  if (!IsProcOwn()) GTEST_SKIP() << "there is no /proc";
  AddEvent(PerfEvent::kSoftware, 1);
  const auto own = static_cast<std::uint32_t>(NativePlatform::ProcessId());
  account_.LeaveOut("libours");
  Take(PerfRecordType::kMmap2, MapBody(own, 0x5000, 0x1000, 0, "/lib/libours.so"), 4);
  EXPECT_TRUE(SampleOf(own, 10, own, 5, 1000).ok());
  EXPECT_EQ(account_.counts().samples, 0u);
  EXPECT_TRUE(account_.Attach(own).ok());
  EXPECT_TRUE(SampleOf(own, 10, own, 7, 1000).ok());
  EXPECT_EQ(account_.counts().samples, 1u);
}

TEST_F(PerfAccountTest, TwoClocksHaveTwoColumns) {
  AddEvent(PerfEvent::kSoftware, 1);
  AddEvent(PerfEvent::kSoftware, 0);
  header_.events[1].name = "cpu-clock";
  EXPECT_TRUE(Sample(10, 42, 5, 1000).ok());
  EXPECT_TRUE(Sample(11, 42, 5, 1000).ok());
  EXPECT_THAT(RowsOf(Finish()), ElementsAre("? 1 1000 1 1000"));
}

TEST_F(PerfAccountTest, ASampleWithoutAPeriodCountsForOne) {
  AddEvent(PerfEvent::kSoftware, 2);
  EXPECT_TRUE(Sample(10, 42, 5, 0).ok());
  EXPECT_THAT(RowsOf(Finish()), ElementsAre("? 1 1"));
}

TEST_F(PerfAccountTest, EachSampleIsAMomentOfItsThread) {
  AddEvent(PerfEvent::kSoftware, 1);
  header_.clock_offset_ns = 1000;
  Take(PerfRecordType::kComm, NameBody(42, 43, "worker"));
  EXPECT_TRUE(Sample(10, 43, 5, 100).ok());
  EXPECT_TRUE(Sample(10, 43, 9, 200).ok());
  const LoadedProfile loaded = Finish();
  ASSERT_EQ(loaded.profile.moments.size(), 2u);
  EXPECT_EQ(loaded.profile.moments[0].time_ns, 1005);
  EXPECT_EQ(loaded.profile.moments[1].time_ns, 1009);
  EXPECT_EQ(loaded.profile.time_ns, 1005);
  EXPECT_EQ(loaded.profile.duration_ns, 4);
  ASSERT_EQ(loaded.profile.threads.size(), 1u);
  EXPECT_EQ(loaded.profile.threads[0].id, 43u);
  EXPECT_EQ(loaded.profile.threads[0].name, "worker");
}

TEST_F(PerfAccountTest, LostSamplesHaveTheMeanAmount) {
  AddEvent(PerfEvent::kSoftware, 1);
  EXPECT_TRUE(Sample(10, 42, 5, 100).ok());
  EXPECT_TRUE(Sample(10, 42, 6, 300).ok());
  Take(PerfRecordType::kLost, Words({10, 3}));
  EXPECT_EQ(account_.counts().samples, 2u);
  EXPECT_EQ(account_.counts().lost, 3u);
  EXPECT_THAT(RowsOf(Finish()), ElementsAre("? 2 400", "[lost] 3 600"));
}

// As of a compiler that lists its code when the process ends.
TEST_F(PerfAccountTest, CodeThatIsListedAtTheEndHasItsName) {
  AddEvent(PerfEvent::kSoftware, 1);
  std::string name;
  account_.UseGenerated([&name](std::uint32_t process, Address address) -> std::string_view {
    EXPECT_EQ(process, 42u);
    return address == 0x5000 ? std::string_view(name) : "";
  });
  EXPECT_TRUE(Sample(10, 42, 5, 100, 0x5000).ok());
  EXPECT_TRUE(Sample(10, 42, 6, 100, 0x6000).ok());
  name = "listed";
  EXPECT_TRUE(Sample(10, 42, 7, 100, 0x5000).ok());
  EXPECT_THAT(RowsOf(Finish()), ElementsAre("listed 2 200", "? 1 100"));
}

// The kernel puts the id of an event into such a record that has lost nothing.
TEST_F(PerfAccountTest, OfWhatARingOfSeveralEventsHasLostNothingSaysWhose) {
  AddEvent(PerfEvent::kSoftware, 1);
  AddEvent(PerfEvent::kSoftware, 2);
  EXPECT_TRUE(Sample(10, 42, 5, 100).ok());
  EXPECT_TRUE(Sample(11, 42, 5, 1).ok());
  Take(PerfRecordType::kLost, Words({10, 3}));
  EXPECT_EQ(account_.counts().lost, 3u);
  EXPECT_THAT(RowsOf(Finish()), ElementsAre("? 1 100 1 1"));
}

TEST_F(PerfAccountTest, AnEventSaysWhatItHasLostItself) {
  AddEvent(PerfEvent::kSoftware, 1);
  AddEvent(PerfEvent::kSoftware, 2);
  EXPECT_TRUE(Sample(10, 42, 5, 100).ok());
  EXPECT_TRUE(Sample(11, 42, 5, 1).ok());
  Take(PerfRecordType::kLost, Words({10, 7}));
  const Bytes of_faults = Join({Words({7}), HalfWord(42), HalfWord(42), Words({9, 11})});
  Take(PerfRecordType::kLostSamples, of_faults);
  EXPECT_EQ(account_.counts().lost, 7u);
  EXPECT_THAT(RowsOf(Finish()), ElementsAre("? 1 100 1 1", "[lost] 0 0 7 7"));
}

TEST_F(PerfAccountTest, NoAmountIsLessThanNothing) {
  AddEvent(PerfEvent::kSoftware, 1);
  EXPECT_TRUE(Sample(10, 42, 5, 100).ok());
  EXPECT_TRUE(Sample(10, 42, 5, 100).ok());
  const PerfAccount::Total total{.lost = 3, .amount = 150};
  account_.SetTotals(std::span(&total, 1));
  EXPECT_THAT(RowsOf(Finish()), ElementsAre("? 2 200", "[lost] 3 0"));
}

TEST_F(PerfAccountTest, WhatTwoRecordsSayIsLostCountsOnce) {
  AddEvent(PerfEvent::kSoftware, 1);
  EXPECT_TRUE(Sample(10, 42, 5, 100).ok());
  Take(PerfRecordType::kLost, Words({10, 3}));
  Take(PerfRecordType::kLostSamples, Words({2}));
  const PerfAccount::Total total{.lost = 4, .amount = 500};
  account_.SetTotals(std::span(&total, 1));
  EXPECT_EQ(account_.counts().lost, 4u);
  EXPECT_THAT(RowsOf(Finish()), ElementsAre("? 1 100", "[lost] 4 400"));
}

TEST_F(PerfAccountTest, WhatIsNeitherInSamplesNorLostIsResidual) {
  AddEvent(PerfEvent::kSoftware, 1);
  EXPECT_TRUE(Sample(10, 42, 5, 100).ok());
  const PerfAccount::Total total{.lost = 1, .amount = 250};
  account_.SetTotals(std::span(&total, 1));
  EXPECT_THAT(RowsOf(Finish()), ElementsAre("? 1 100", "[lost] 1 100", "[residual] 0 50"));
}

TEST_F(PerfAccountTest, TimeOffTheCpuLastsUntilTheReturnOrTheEnd) {
  AddEvent(PerfEvent::kSoftware, 3);  // switches
  header_.events[0].is_off_cpu = true;
  header_.events[0].name = "off-cpu";
  EXPECT_TRUE(Sample(10, 42, 100, 1, 0x1000).ok());
  EXPECT_TRUE(Sample(10, 43, 200, 1, 0x2000).ok());
  EXPECT_TRUE(Sample(10, 44, 300, 1, 0x3000).ok());
  Take(PerfRecordType::kSwitch, Trailer(42, 150), 150);
  Take(PerfRecordType::kExit, Join({ForkBody(42, 1, 44, 42), Trailer(44, 350)}), 350);
  account_.EndAbsences(1000);
  const LoadedProfile loaded = Finish();
  EXPECT_EQ(loaded.profile.value_types[1], (ValueType{"off-cpu", "nanoseconds"}));
  EXPECT_THAT(RowsOf(loaded), ElementsAre("? 1 50", "? 1 800", "? 1 0"));
}

TEST_F(PerfAccountTest, OneEventTellsOfTheSwitchesAndOfTheTimeOffTheCpu) {
  AddEvent(PerfEvent::kSoftware, 3);
  header_.events[0].is_off_cpu = header_.events[0].is_switch = true;
  header_.events[0].name = "off_cpu";
  EXPECT_TRUE(Sample(10, 42, 100, 1).ok());
  Take(PerfRecordType::kSwitch, Trailer(42, 150), 150);
  EXPECT_TRUE(Sample(10, 42, 160, 1).ok());
  Take(PerfRecordType::kSwitch, Trailer(42, 180), 180);
  const LoadedProfile loaded = Finish();
  EXPECT_THAT(loaded.profile.value_types,
              ElementsAre(ValueType{"samples", "count"}, ValueType{"off_cpu", "nanoseconds"},
                          ValueType{"context-switches", "count"}));
  EXPECT_THAT(RowsOf(loaded), ElementsAre("? 2 70 2"));
}

TEST_F(PerfAccountTest, ASwitchOffTheCpuSaysNothingThatASampleDoesNot) {
  AddEvent(PerfEvent::kSoftware, 3);
  header_.events[0].is_off_cpu = true;
  EXPECT_TRUE(Sample(10, 42, 100, 1).ok());
  EXPECT_TRUE(
      account_.Take(RecordOf(PerfRecordType::kSwitch, Trailer(42, 120), 1 << 13), 120).ok());
  Take(PerfRecordType::kSwitch, Trailer(42, 150), 150);
  EXPECT_THAT(RowsOf(Finish()), ElementsAre("? 1 50"));
}

TEST_F(PerfAccountTest, AThreadThatHasEndedIsNotOffItsCpu) {
  constexpr std::uint32_t kOnNoList = 0xFFFFFFFF;
  AddEvent(PerfEvent::kSoftware, 3);
  header_.events[0].is_off_cpu = true;
  EXPECT_TRUE(Sample(10, 42, 100, 1).ok());
  Take(PerfRecordType::kSwitchOfCpu, Join({Words({7}), Trailer(42, 150)}), 150);
  Take(PerfRecordType::kExit, Join({ForkBody(42, 1, 42, 42), Trailer(42, 200)}), 200);
  EXPECT_TRUE(Sample(10, 42, 210, 1).ok()) << "its last switch";
  EXPECT_TRUE(SampleOf(kOnNoList, 10, kOnNoList, 220, 1).ok());
  account_.EndAbsences(1000);
  EXPECT_THAT(RowsOf(Finish()), ElementsAre("? 2 50", "? 1 0"));
}

TEST_F(PerfAccountTest, TheIdleTaskOfAMachineIsNoProcess) {
  AddEvent(PerfEvent::kSoftware, 2);
  header_.events[0].name = "page-faults";
  account_.UseMachine();
  EXPECT_TRUE(Sample(10, 42, 100, 3).ok());
  EXPECT_TRUE(SampleOf(0, 10, 0, 110, 4).ok());
  const std::vector<PerfAccount::Total> totals{{.lost = 0, .amount = 9}};
  account_.SetTotals(totals);
  EXPECT_THAT(RowsOf(Finish()), ElementsAre("? 1 3", "[residual] 0 2"));
}

TEST_F(PerfAccountTest, AClockOfAMachineHasWhatRunsInOtherNamespaces) {
  AddEvent(PerfEvent::kSoftware, 1);
  account_.UseMachine();
  EXPECT_TRUE(SampleOf(0, 10, 0, 100, 7).ok());
  const LoadedProfile loaded = Finish();
  EXPECT_THAT(RowsOf(loaded), ElementsAre("? 1 7"));
  EXPECT_EQ(loaded.profile.label_sets[loaded.profile.samples[0].labels].Text(
                PerfThreads::kProcessNameLabel),
            PerfThreads::kOutsideName);
}

TEST_F(PerfAccountTest, WhatWasCountedBeforeItsSampleIsInOnePeriod) {
  AddEvent(PerfEvent::kSoftware, 1);
  const auto end_period = [this](std::uint64_t counted) {
    const std::vector<PerfAccount::Total> totals{{.lost = 0, .amount = counted}};
    account_.SetTotals(totals);
    return RowsOf(Finish());
  };
  EXPECT_TRUE(Sample(10, 42, 100, 90).ok());
  EXPECT_THAT(end_period(100), ElementsAre("? 1 90", "[residual] 0 10"));
  EXPECT_TRUE(Sample(10, 42, 200, 90).ok());
  EXPECT_THAT(end_period(80), ElementsAre("? 1 90")) << "10 of them are above";
  EXPECT_TRUE(Sample(10, 42, 300, 90).ok());
  EXPECT_THAT(end_period(120), ElementsAre("? 1 90", "[residual] 0 20"));
}

TEST_F(PerfAccountTest, EachPeriodHasItsOwnSamplesAndTheCodeOfAllBefore) {
  files_.Write("/lib/a", {.build_id = 0x11});
  AddEvent(PerfEvent::kSoftware, 1);
  Take(PerfRecordType::kComm, NameBody(42, 42, "main"));
  Take(PerfRecordType::kMmap2, MapBody(42, 0x10000, 0x1000, testing::FakeImage::kOffset, "/lib/a"));
  EXPECT_TRUE(Sample(10, 42, 5, 100, 0x10010).ok());
  const LoadedProfile first = Finish();
  EXPECT_TRUE(Sample(10, 42, 6, 300, 0x10020).ok());
  const LoadedProfile second = Finish();
  EXPECT_THAT(RowsOf(second), ElementsAre("? 1 300"));
  EXPECT_THAT(second.profile.frames, ElementsAre(Frame{0x10020, 0}));
  EXPECT_EQ(second.profile.modules, first.profile.modules);
  EXPECT_EQ(second.profile.threads.at(0).name, "main");
  EXPECT_THAT(RowsOf(Finish()), ElementsAre());
}

TEST_F(PerfAccountTest, MapsSayWhereCodeIs) {
  files_.Write("/lib/a", {.build_id = 0x11});
  AddEvent(PerfEvent::kSoftware, 1);
  header_.build_ids["/lib/b"] = "22222222";
  Take(PerfRecordType::kMmap2, MapBody(42, 0x10000, 0x1000, testing::FakeImage::kOffset, "/lib/a"));
  Take(PerfRecordType::kMmap2, MapBody(42, 0x20000, 0x1000, 0, "/lib/b"));
  EXPECT_TRUE(Sample(10, 42, 5, 100, 0x10010).ok());
  EXPECT_TRUE(Sample(10, 42, 6, 100, 0x20010).ok());
  const LoadedProfile loaded = Finish();
  ASSERT_EQ(loaded.profile.modules.size(), 2u);
  EXPECT_EQ(loaded.profile.modules[0].path, "/lib/a");
  EXPECT_EQ(loaded.profile.modules[0].build_id, "11111111");
  EXPECT_EQ(loaded.profile.modules[1].build_id, "22222222") << "as the file says";
  EXPECT_THAT(loaded.profile.frames, ElementsAre(Frame{0x10010, 0}, Frame{0x20010, 1}));
}

TEST_F(PerfAccountTest, RefusesSamplesThatAreBrokenOrOfNoEvent) {
  EXPECT_EQ(Sample(10, 42, 5, 100).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(account_.Finish().status().code(), absl::StatusCode::kInvalidArgument);
  AddEvent(PerfEvent::kSoftware, 1);
  const Bytes body = Words({10, 0x1000});
  EXPECT_EQ(account_.Take(RecordOf(PerfRecordType::kSample, body), 5).code(),
            absl::StatusCode::kInvalidArgument);
  EXPECT_TRUE(Sample(10, 42, 5, 100).ok());
  EXPECT_THAT(RowsOf(Finish()), ElementsAre("? 1 100")) << "what is whole is kept";
}

// Of a recording of the kernel whose _text is at `text`, on a machine with the file of names.
std::vector<std::string> KernelFrames(std::uint64_t text, bool is_running) {
  const std::string path =
      (std::filesystem::path(::testing::TempDir()) / "strobe_perf_account_symbols").string();
  std::ofstream(path, std::ios::binary) << "ffffffff81000000 T _text\nffffffff81000100 T f\n";
  testing::FakeFiles files;
  PerfHeader header;
  const AttributeBytes attributes{.sample_type = kPerfIp};
  EXPECT_TRUE(header.AddEvent(AsBytes(attributes.All()), {}).ok());
  PerfAccount account(header, files, {}, path);
  if (is_running) account.UseRunningKernel(KernelSymbols::Read(path));
  const Bytes map = Join({HalfWord(0xFFFFFFFF), HalfWord(0), Words({0, 0, text}),
                          PaddedText("[kernel.kallsyms]_text")});
  EXPECT_TRUE(account.Take(RecordOf(PerfRecordType::kMmap, map), 0).ok());
  const Bytes body = Words({0xFFFFFFFF81000110});
  EXPECT_TRUE(account.Take(RecordOf(PerfRecordType::kSample, body, kFromKernel), 0).ok());
  std::filesystem::remove(path);
  const absl::StatusOr<LoadedProfile> loaded = account.Finish();
  EXPECT_TRUE(loaded.ok()) << loaded.status();
  return RowsOf(*loaded);
}

TEST(PerfAccountKernelTest, HasNamesIfItIsTheKernelOfTheRecording) {
  EXPECT_THAT(KernelFrames(0xFFFFFFFF81000000, false), ElementsAre("f 1 1000"));
  EXPECT_THAT(KernelFrames(0xFFFFFFFF82000000, false), ElementsAre("[kernel] 1 1000"));
  EXPECT_THAT(KernelFrames(0xFFFFFFFF82000000, true), ElementsAre("f 1 1000"));
}

}  // namespace
}  // namespace strobe::internal
