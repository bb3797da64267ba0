#include "../../src/encode/firefox/firefox_threads.h"

#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/testing/profiles.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int64_t kFirefoxMs = 1'000'000;

// One thread whose rows have a frame each, in a period of 100 ms.
class FirefoxThreadsTest : public ::testing::Test {
 protected:
  FirefoxThreadsTest() : sample_{"threads", testing::ProfileHead(), {}}, builder_(sample_.profile) {
    profile().duration_ns = 100 * kFirefoxMs;
    builder_.AddThread(7, "main");
  }

  Profile& profile() { return sample_.profile; }

  void AddRow(std::int64_t cpu_ms) {
    builder_.AddSample(0, {builder_.AddFrame(0x1000 + profile().frames.size(), Frame::kNoModule)},
                       {1, cpu_ms * kFirefoxMs});
  }
  void AddMoment(std::uint32_t row, std::int64_t time_ms, std::int64_t cpu_ms) {
    profile().moments.push_back({row, profile().time_ns + time_ms * kFirefoxMs});
    profile().moment_values.insert(profile().moment_values.end(), {1, cpu_ms * kFirefoxMs});
  }

  // "time stack weight cpu labels" of each sample of the first thread, in milliseconds.
  std::vector<std::string> Samples(FirefoxColumns columns = {.weight = 1, .cpu = 1}) {
    const absl::StatusOr<ProfileView> view = ProfileView::Make(profile(), sample_.symbols);
    EXPECT_TRUE(view.ok()) << view.status();
    const FirefoxTables tables(*view);
    const SampleParts parts(profile());
    std::vector<std::string> texts;
    for (const FirefoxSample& sample :
         FirefoxSamples(profile(), tables, PartsByThread(profile(), parts)[0], columns)) {
      std::string text;
      for (const std::int64_t number :
           {sample.time_ns / kFirefoxMs, sample.stack, sample.weight / kFirefoxMs,
            sample.cpu_ns / kFirefoxMs, sample.labels})
        text += (text.empty() ? "" : " ") + std::to_string(number);
      texts.push_back(text);
    }
    return texts;
  }
  std::string Thread() {
    const absl::StatusOr<ProfileView> view = ProfileView::Make(profile(), sample_.symbols);
    EXPECT_TRUE(view.ok()) << view.status();
    FirefoxTables tables(*view);
    const SampleParts parts(profile());
    const std::vector<ThreadParts> threads = PartsByThread(profile(), parts);
    JsonWriter json;
    WriteFirefoxThread(json, profile(), tables, threads[0],
                       FirefoxSamples(profile(), tables, threads[0], {.weight = 1, .cpu = 1}),
                       kFirefoxMilliseconds);
    return json.Take();
  }

  testing::SampleProfile sample_;
  testing::ProfileBuilder builder_;
};

TEST_F(FirefoxThreadsTest, WithoutAmountsThereAreNoSamples) {
  EXPECT_THAT(Samples(), IsEmpty());
  AddRow(0);
  EXPECT_THAT(Samples(), IsEmpty());
}

TEST_F(FirefoxThreadsTest, RowsWithoutTimesFillTheLifeByTheirShares) {
  AddRow(30);
  AddRow(10);
  EXPECT_THAT(Samples(), ElementsAre("0 -1 0 0 -1", "75 0 30 30 0", "100 1 10 10 0"));
  profile().threads[0].begin_ns = profile().time_ns + 20 * kFirefoxMs;
  profile().threads[0].end_ns = profile().time_ns + 60 * kFirefoxMs;
  EXPECT_THAT(Samples(), ElementsAre("20 -1 0 0 -1", "50 0 30 30 0", "60 1 10 10 0"));
}

TEST_F(FirefoxThreadsTest, AGapThatCpuTimeDoesNotFillIsIdle) {
  AddRow(30);
  AddMoment(0, 10, 10);
  AddMoment(0, 25, 10);
  AddMoment(0, 60, 10);
  EXPECT_THAT(Samples(), ElementsAre("0 -1 0 0 -1", "10 0 10 10 0", "25 0 10 10 0", "50 -1 0 0 -1",
                                     "60 0 10 10 0"));
}

TEST_F(FirefoxThreadsTest, AMomentBeforeTheBeginStandsAtTheBegin) {
  AddRow(10);
  AddMoment(0, -5, 10);
  profile().threads[0].begin_ns = profile().time_ns + 20 * kFirefoxMs;
  EXPECT_THAT(Samples(), ElementsAre("0 -1 0 0 -1", "0 0 10 10 0"));
}

TEST_F(FirefoxThreadsTest, RestsStandAtTheEndWithoutTheirLabels) {
  AddRow(30);
  AddMoment(0, 40, 10);
  profile().threads[0].end_ns = profile().time_ns + 30 * kFirefoxMs;
  EXPECT_THAT(Samples(),
              ElementsAre("0 -1 0 0 -1", "30 -1 0 0 -1", "40 0 10 10 0", "40 0 20 20 -1"))
      << "and never before a moment";
}

TEST_F(FirefoxThreadsTest, WithoutAColumnOfCpuTimeNothingIsIdle) {
  AddRow(10);
  AddMoment(0, 40, 10);
  EXPECT_THAT(Samples({.weight = 1, .cpu = std::nullopt}),
              ElementsAre("0 -1 0 0 -1", "40 0 10 0 0"));
}

TEST_F(FirefoxThreadsTest, TheProcesssThreadIsTheMainOne) {
  AddRow(10);
  EXPECT_THAT(Thread(), HasSubstr(R"("name":"main","isMainThread":false,)"
                                  R"("processName":"sample_program","pid":"4242","tid":7,)"));
  profile().process_id = 7;
  EXPECT_THAT(Thread(), HasSubstr(R"("isMainThread":true)"));
}

TEST_F(FirefoxThreadsTest, AThreadThatOnlyLabelsNameLivesAllTheTime) {
  AddRow(10);
  profile().threads.clear();
  const std::string text = Thread();
  EXPECT_THAT(text, HasSubstr(R"("registerTime":0,"unregisterTime":null)"));
  EXPECT_THAT(text, HasSubstr(R"("markers":{"data":[],"name":[],)")) << "nothing is known of it";
}

TEST_F(FirefoxThreadsTest, CpuTimeThatIsUnknownIsNotShown) {
  AddRow(10);
  profile().threads[0].samples = 3;
  EXPECT_THAT(Thread(), HasSubstr(R"({"type":"Thread","samples":3})"));
  profile().threads[0].cpu_ns = 0;
  EXPECT_THAT(Thread(), HasSubstr(R"({"type":"Thread","cpu":0,"samples":3})"));
}

TEST_F(FirefoxThreadsTest, ALifeIsCutToThePeriod) {
  AddRow(10);
  profile().threads[0].begin_ns = profile().time_ns - kFirefoxMs;
  profile().threads[0].end_ns = profile().time_ns + 200 * kFirefoxMs;
  EXPECT_THAT(Thread(), HasSubstr(R"("registerTime":0,"unregisterTime":100,)"));
  profile().duration_ns = std::numeric_limits<std::int64_t>::min();
  EXPECT_THAT(Thread(), HasSubstr(R"("registerTime":0,"unregisterTime":0,)"));
}

}  // namespace
}  // namespace strobe::internal
