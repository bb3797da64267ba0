#include "../../../../src/cli/perf/linux/perf_request.h"

#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "../../../../src/cli/perf/perf_event_table.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::HasSubstr;

TEST(PerfRequestNames, EachNameOfTheTableIsItsEvent) {
  for (const KnownPerfEvent& event : kPerfEventTable) {
    VisitNames(event, [&](std::string_view name) {
      const auto requests = ParsePerfRequests(name, "/x");
      ASSERT_EQ(requests.ok(), IsRecordable(event)) << name;
      if (!requests.ok()) return;
      EXPECT_EQ(requests->front().type, event.type) << name;
      EXPECT_EQ(requests->front().config, event.config) << name;
      EXPECT_EQ(requests->front().is_off_cpu, event.is_off_cpu) << name;
    });
  }
}

TEST(PerfRequestNames, EventsOfCachesHaveARate) {
  const auto requests = ParsePerfRequests("LLC,L1-dcache-load-misses:u", "/x");
  ASSERT_TRUE(requests.ok()) << requests.status();
  EXPECT_TRUE((*requests)[0].has_rate() && (*requests)[1].has_rate());
  EXPECT_EQ((*requests)[0].name, "LLC-load-misses");
  EXPECT_FALSE((*requests)[1].counts_kernel);
}

TEST(PerfRequestNames, SaysWhichOptionCountsWhatOthersCallAnEvent) {
  EXPECT_THAT(ParsePerfRequests("ALLOC", "/x").status().message(), HasSubstr("--alloc"));
  EXPECT_THAT(ParsePerfRequests("sWALL", "/x").status().message(), HasSubstr("--wall"));
}

// A directory as tracefs, with one tracepoint.
class PerfRequestFields : public ::testing::Test {
 protected:
  void SetUp() override {
    const std::filesystem::path directory =
        std::filesystem::path(tracing_) / "events" / "made" / "up";
    std::filesystem::create_directories(directory);
    std::ofstream(directory / "id") << "314\n";
    std::ofstream(directory / "format")
        << "name: up\nID: 314\nformat:\n"
           "\tfield:size_t bytes_req;\toffset:24;\tsize:8;\tsigned:0;\n"
           "\tfield:int node;\toffset:48;\tsize:4;\tsigned:1;\n";
  }
  void TearDown() override { std::filesystem::remove_all(tracing_); }
  std::string ErrorOf(const std::string& list) {
    return std::string(ParsePerfRequests(list, tracing_).status().message());
  }

  const std::string tracing_ = ::testing::TempDir() + "made_up_tracing";
};

TEST_F(PerfRequestFields, AreBetweenSlashes) {
  const auto requests = ParsePerfRequests("task-clock,made:up/bytes_req/,made:up", tracing_);
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 2u) << "a tracepoint and its field are one event";
  const PerfRequest& field = requests->back();
  EXPECT_EQ(field.name, "made:up/bytes_req");
  EXPECT_EQ(field.type, PerfEvent::kTracepoint);
  EXPECT_EQ(field.config, 314u);
  EXPECT_EQ(field.field, (TracepointField{24, 8, false}));
  EXPECT_FALSE(requests->front().field.has_value());
  const auto later = ParsePerfRequests("made:up,made:up/node/:k", tracing_);
  ASSERT_TRUE(later.ok()) << later.status();
  EXPECT_EQ(later->front().field, (TracepointField{48, 4, true}));
}

TEST_F(PerfRequestFields, SayWhatIsWrong) {
  EXPECT_THAT(ErrorOf("made:up/bytes/"), HasSubstr("made:up: there is no field bytes: expected"));
  for (const char* const half : {"made:up/", "made:up//", "made:up/node", "made:up/a/b/"})
    EXPECT_THAT(ErrorOf(half), HasSubstr("between two slashes")) << half;
  EXPECT_THAT(ErrorOf("made:up/node/,made:up/bytes_req/"), HasSubstr("name one of them"));
  EXPECT_THAT(ErrorOf("made:down/node/"), HasSubstr("no tracepoint made:down"));
  EXPECT_THAT(ErrorOf("made:../up/node/"), HasSubstr("no tracepoint"));
  std::filesystem::remove(tracing_ + "/events/made/up/format");
  EXPECT_THAT(ErrorOf("made:up/node/"), HasSubstr("no tracepoint made:up"));
}

TEST_F(PerfRequestFields, AreRootsToSee) {
  const std::string text = RefusalText(
      {.error = EPERM, .event = "made:up/node", .target = "it", .paranoid = 2, .has_field = true});
  EXPECT_THAT(text, HasSubstr("kernel.perf_event_paranoid is 2, and -1 would allow them"));
}

}  // namespace
}  // namespace strobe::internal
