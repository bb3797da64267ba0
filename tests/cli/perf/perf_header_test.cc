#include "../../../src/cli/perf/perf_header.h"

#include <cstdint>
#include <string>
#include <utility>

#include "../../../src/symbolize/images/byte_source.h"
#include "../perf_bytes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

absl::Status AddEventOf(PerfHeader& header, const AttributeBytes& attributes,
                        const Bytes& ids = {}) {
  return header.AddEvent(AsBytes(attributes.All()), AsBytes(ids));
}

absl::Status ReadHeader(PerfHeader& header, const Bytes& file) {
  return header.Read(SpanSource(AsBytes(file)));
}

TEST(PerfEventTest, AClockHasNanosecondsAndADummyNoSamples) {
  EXPECT_TRUE((PerfEvent{.type = PerfEvent::kSoftware, .config = 0, .name = ""}.is_clock()));
  EXPECT_TRUE((PerfEvent{.type = PerfEvent::kSoftware, .config = 1, .name = ""}.is_clock()));
  EXPECT_FALSE((PerfEvent{.type = PerfEvent::kSoftware, .config = 2, .name = ""}.is_clock()));
  EXPECT_FALSE((PerfEvent{.type = PerfEvent::kHardware, .config = 0, .name = ""}.is_clock()));
  EXPECT_TRUE((PerfEvent{.type = PerfEvent::kSoftware, .config = 9, .name = ""}.is_dummy()));
  EXPECT_FALSE((PerfEvent{.type = PerfEvent::kHardware, .config = 9, .name = ""}.is_dummy()));
}

TEST(PerfHeaderTest, TakesAnEventsAttributesAndIds) {
  PerfHeader header;
  const AttributeBytes attributes{.period = 500,
                                  .sample_type = kPerfIp | kPerfStack,
                                  .flags = kIdsInAllFlag,
                                  .branches = std::uint64_t{1} << 17,
                                  .registers = 0xFF};
  ASSERT_TRUE(AddEventOf(header, attributes, Words({10, 11})).ok());
  ASSERT_TRUE(AddEventOf(header, {.flags = kFrequencyFlag}, Words({12})).ok());
  ASSERT_THAT(header.events, SizeIs(2));
  const PerfEvent& event = header.events[0];
  EXPECT_EQ(event.type, PerfEvent::kSoftware);
  EXPECT_EQ(event.config, 1u);
  EXPECT_EQ(event.period, 500u);
  EXPECT_EQ(event.sample_type, kPerfIp | kPerfStack);
  EXPECT_EQ(event.registers, 0xFFu);
  EXPECT_TRUE(event.has_branch_index);
  EXPECT_TRUE(event.has_ids_in_all_records);
  EXPECT_EQ(header.events[1].period, 0u) << "a frequency is no period";
  EXPECT_FALSE(header.events[1].has_ids_in_all_records);
  EXPECT_EQ(header.events_by_id.at(11), 0u);
  EXPECT_EQ(header.events_by_id.at(12), 1u);
}

TEST(PerfHeaderTest, NamesEventsByTheirNumbers) {
  PerfHeader header;
  for (const auto& [type, config] :
       {std::pair<std::uint32_t, std::uint64_t>{0, 0}, {0, 9}, {1, 2}, {1, 11}, {1, 12}, {4, 77}})
    ASSERT_TRUE(AddEventOf(header, {.type = type, .config = config}).ok());
  std::vector<std::string> names;
  for (const PerfEvent& event : header.events) names.push_back(event.name);
  EXPECT_THAT(names, ElementsAre("cycles", "ref-cycles", "page-faults", "cgroup-switches",
                                 "event-1-12", "event-4-77"));
}

TEST(PerfHeaderTest, RefusesAnEventThatIsTooShort) {
  PerfHeader header;
  Bytes attributes = AttributeBytes{}.All();
  attributes.resize(63);
  EXPECT_EQ(header.AddEvent(AsBytes(attributes), {}).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(header.events, IsEmpty());
}

TEST(PerfHeaderTest, TheFileNamesItsEvents) {
  PerfHeader header;
  ASSERT_TRUE(AddEventOf(header, {}).ok());
  ASSERT_TRUE(AddEventOf(header, {.config = 2}).ok());
  const auto entry = [](const Bytes& text, const std::vector<std::uint64_t>& ids) {
    return Join({Bytes(96), HalfWord(static_cast<std::uint32_t>(ids.size())),
                 HalfWord(static_cast<std::uint32_t>(text.size())), text, Words(ids)});
  };
  const Bytes names = Join({HalfWord(3), HalfWord(96), entry(PaddedText("task-clock:u"), {1, 2}),
                            entry(Bytes(8), {3}), entry(PaddedText("too many"), {})});
  header.TakeFeature(12, AsBytes(names));
  EXPECT_EQ(header.events[0].name, "task-clock:u");
  EXPECT_EQ(header.events[1].name, "page-faults") << "an empty name is none";
  for (std::size_t size = 0; size < names.size(); ++size)
    header.TakeFeature(12, AsBytes(names).first(size));
  EXPECT_EQ(header.events[0].name, "task-clock:u");
}

TEST(PerfHeaderTest, TheFileNamesItsMachine) {
  PerfHeader header;
  EXPECT_EQ(header.architecture, kNativeArchitecture);
  const auto take = [&](std::string_view name) {
    const Bytes text = PaddedText(name);
    header.TakeFeature(6, AsBytes(Join({HalfWord(static_cast<std::uint32_t>(text.size())), text})));
    return header.architecture;
  };
  EXPECT_EQ(take("x86_64"), Architecture::kX86_64);
  EXPECT_EQ(take("aarch64"), Architecture::kAarch64);
  EXPECT_EQ(take("i686"), std::nullopt);
  EXPECT_EQ(take("riscv64"), std::nullopt);
}

Bytes BuildIdBody(std::uint8_t byte, std::uint32_t size, std::string_view path) {
  return Join({HalfWord(1), Bytes(20, byte), HalfWord(size), PaddedText(path)});
}

TEST(PerfHeaderTest, TakesBuildIds) {
  PerfHeader header;
  const Bytes whole = BuildIdBody(0xAB, 0, "/lib/a");
  const Bytes sized = BuildIdBody(0xCD, 3, "/lib/b");
  constexpr auto kType = static_cast<PerfRecordType>(0);
  header.TakeFeature(2, AsBytes(Join({RecordBytes(kType, whole), RecordBytes(kType, sized, 0x8000),
                                      Bytes(7, 0xFF)})));
  std::string twenty;
  for (int i = 0; i < 20; ++i) twenty += "ab";
  EXPECT_THAT(header.build_ids, ElementsAre(Pair("/lib/a", twenty), Pair("/lib/b", "cdcdcd")));
  header.TakeBuildId(0x8000, AsBytes(BuildIdBody(0x12, 99, "/lib/b")));
  EXPECT_EQ(header.build_ids.at("/lib/b").size(), 40u) << "a size beyond the longest";
  header.TakeBuildId(0, AsBytes(BuildIdBody(0x12, 20, "")));
  header.TakeBuildId(0, AsBytes(Bytes(24, 1)));
  EXPECT_THAT(header.build_ids, SizeIs(2));
}

TEST(PerfHeaderTest, TakesTheClocksOffset) {
  PerfHeader header;
  header.TakeFeature(29, AsBytes(Join({HalfWord(1), HalfWord(1), Word(1000), Word(400)})));
  EXPECT_EQ(header.clock_offset_ns, 600);
  header.TakeFeature(29, AsBytes(Join({HalfWord(1), HalfWord(1), Word(1000)})));
  EXPECT_EQ(header.clock_offset_ns, 600) << "a part says nothing";
  header.TakeFeature(200, AsBytes(Bytes(64, 0xFF)));  // ignored
}

// A file with sections: one event with the id 10, `records`, and the clock's offset.
struct PerfFile {
  Bytes records = Bytes(24, 7);
  std::uint64_t record_bytes = 24;
  std::uint64_t features = std::uint64_t{1} << 29;

  static constexpr std::uint64_t kHeaderBytes = 104;

  [[nodiscard]] Bytes All() const {
    const Bytes attributes = AttributeBytes{}.All();
    const std::uint64_t table = kHeaderBytes + 8;
    const std::uint64_t data = table + attributes.size() + 16;
    const Bytes clock = Join({HalfWord(1), HalfWord(1), Word(900), Word(0)});
    return Join({{'P', 'E', 'R', 'F', 'I', 'L', 'E', '2'},
                 Word(kHeaderBytes),
                 Word(attributes.size() + 16),
                 Words({table, attributes.size() + 16, data, record_bytes, 0, 0}),
                 Words({features, 0, 0, 0}),
                 Word(10),
                 attributes,
                 Words({kHeaderBytes, 8}),
                 records,
                 Words({data + records.size() + 16, clock.size()}),
                 clock});
  }
};

TEST(PerfHeaderTest, ReadsAFileWithSections) {
  PerfHeader header;
  const Bytes file = PerfFile{}.All();
  const absl::Status status = ReadHeader(header, file);
  ASSERT_TRUE(status.ok()) << status;
  ASSERT_THAT(header.events, SizeIs(1));
  EXPECT_EQ(header.events[0].name, "task-clock");
  EXPECT_EQ(header.events_by_id.at(10), 0u);
  EXPECT_EQ(header.end - header.begin, 24u);
  EXPECT_EQ(file[header.begin], 7);
  EXPECT_EQ(header.clock_offset_ns, 900);
  EXPECT_FALSE(header.is_cut_off);
}

TEST(PerfHeaderTest, PerfThatDidNotEndWellHasNotSaidWhereRecordsEnd) {
  PerfHeader header;
  const Bytes file = PerfFile{.record_bytes = 0}.All();
  ASSERT_TRUE(ReadHeader(header, file).ok());
  EXPECT_TRUE(header.is_cut_off);
  EXPECT_EQ(header.end, file.size());
}

TEST(PerfHeaderTest, APipesHeaderIsItsRecords) {
  PerfHeader header;
  const Bytes file = Join({{'P', 'E', 'R', 'F', 'I', 'L', 'E', '2'}, Word(16), Bytes(32)});
  ASSERT_TRUE(ReadHeader(header, file).ok());
  EXPECT_EQ(header.begin, 16u);
  EXPECT_EQ(header.end, 48u);
  EXPECT_TRUE(header.is_cut_off);
  EXPECT_THAT(header.events, IsEmpty());
}

TEST(PerfHeaderTest, EveryBeginningOfAFileIsRefused) {
  const Bytes file = PerfFile{}.All();
  for (std::size_t size = 0; size < file.size(); ++size) {
    PerfHeader header;
    EXPECT_EQ(ReadHeader(header, Bytes(file.begin(), file.begin() + static_cast<int>(size))).code(),
              absl::StatusCode::kInvalidArgument)
        << size;
  }
}

TEST(PerfHeaderTest, RefusesOtherFiles) {
  PerfHeader header;
  const Bytes swapped = Join({{'2', 'E', 'L', 'I', 'F', 'R', 'E', 'P'}, Bytes(96)});
  EXPECT_THAT(std::string(ReadHeader(header, swapped).message()), HasSubstr("order of bytes"));
  EXPECT_THAT(std::string(ReadHeader(header, Bytes(200)).message()), HasSubstr("not a perf.data"));
  const Bytes newer = Join({{'P', 'E', 'R', 'F', 'I', 'L', 'E', '2'}, Word(200), Bytes(200)});
  EXPECT_THAT(std::string(ReadHeader(header, newer).message()), HasSubstr("header is unknown"));
}

TEST(IsPerfDataTest, KnowsBothOrdersOfBytes) {
  EXPECT_TRUE(IsPerfData("PERFILE2 and more"));
  EXPECT_TRUE(IsPerfData("2ELIFREP"));
  EXPECT_FALSE(IsPerfData("PERFILE"));
  EXPECT_FALSE(IsPerfData(""));
}

TEST(HexOfTest, IsLowerCase) {
  EXPECT_EQ(HexOf(AsBytes({0x00, 0xAB, 0x1F})), "00ab1f");
  EXPECT_EQ(HexOf({}), "");
}

}  // namespace
}  // namespace strobe::internal
