#include "../../../src/cli/perf/perf_records.h"

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "../../../src/cli/perf/perf_fields.h"
#include "../../../src/symbolize/images/byte_source.h"
#include "../perf_bytes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "strobe/process/perf_registers.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<PerfRecordType> TypesIn(PerfRecordReader& reader) {
  std::vector<PerfRecordType> types;
  PerfRecord record;
  while (true) {
    const absl::StatusOr<bool> has_record = reader.Next(record);
    EXPECT_TRUE(has_record.ok()) << has_record.status();
    if (!has_record.ok() || !*has_record) return types;
    types.push_back(record.type);
  }
}

PerfHeader HeaderOf(std::uint64_t begin, std::uint64_t end, bool is_cut_off = false) {
  PerfHeader header;
  header.begin = begin;
  header.end = end;
  header.is_cut_off = is_cut_off;
  return header;
}

TEST(PerfRecordReaderTest, ReadsFromTheHeadersBeginToItsEnd) {
  const Bytes file = Join({Bytes(16, 0xFF), RecordBytes(PerfRecordType::kComm, Words({1, 2}), 5),
                           RecordBytes(PerfRecordType::kFinishedRound, {}), Bytes(16, 0xFF)});
  const SpanSource source(AsBytes(file));
  PerfRecordReader reader(source, HeaderOf(16, 16 + 24 + 8));
  PerfRecord record;
  ASSERT_TRUE(*reader.Next(record));
  EXPECT_EQ(record.type, PerfRecordType::kComm);
  EXPECT_EQ(record.misc, 5);
  ASSERT_EQ(record.body.size(), 16u);
  EXPECT_EQ(PerfWord(record.body, 1), 2u);
  EXPECT_EQ(reader.offset(), 16u + 24u);
  ASSERT_TRUE(*reader.Next(record));
  EXPECT_EQ(record.type, PerfRecordType::kFinishedRound);
  EXPECT_TRUE(record.body.empty());
  EXPECT_FALSE(*reader.Next(record));
}

TEST(PerfRecordReaderTest, SkipsTheDataBehindARecord) {
  const Bytes file = Join({RecordBytes(PerfRecordType::kTracingData, Join({HalfWord(5)})),
                           Bytes(8, 0xFF), RecordBytes(PerfRecordType::kAuxTrace, Word(24)),
                           Bytes(24, 0xFF), RecordBytes(PerfRecordType::kComm, {})});
  const SpanSource source(AsBytes(file));
  PerfRecordReader reader(source);
  EXPECT_THAT(TypesIn(reader), ElementsAre(PerfRecordType::kTracingData, PerfRecordType::kAuxTrace,
                                           PerfRecordType::kComm));
}

TEST(PerfRecordReaderTest, ARecordThatIsCutOffIsAnErrorUnlessPerfDidNotEndWell) {
  const Bytes whole = Join({RecordBytes(PerfRecordType::kComm, Words({1, 2})),
                            RecordBytes(PerfRecordType::kAuxTrace, Word(8)), Bytes(8)});
  for (std::size_t size = 25; size < whole.size(); ++size) {
    const SpanSource source(AsBytes(whole).first(size));
    PerfRecordReader cut(source, HeaderOf(0, size, true));
    EXPECT_THAT(TypesIn(cut), ElementsAre(PerfRecordType::kComm)) << size;
    PerfRecordReader alone(source);
    EXPECT_THAT(TypesIn(alone), ElementsAre(PerfRecordType::kComm)) << "a file of a thread";
    PerfRecordReader ended(source, HeaderOf(0, size, false));
    PerfRecord record;
    ASSERT_TRUE(*ended.Next(record));
    EXPECT_EQ(ended.Next(record).status().code(), absl::StatusCode::kInvalidArgument) << size;
  }
}

TEST(PerfRecordReaderTest, RefusesARecordWithoutASize) {
  const Bytes file(8);
  const SpanSource source(AsBytes(file));
  PerfRecordReader reader(source);
  PerfRecord record;
  EXPECT_THAT(std::string(reader.Next(record).status().message()), HasSubstr("has no size"));
}

TEST(PerfRecordReaderTest, ReadsMoreThanItKeepsInMemory) {
  Bytes file;
  const Bytes record = RecordBytes(PerfRecordType::kSample, Bytes(0xFFF0 - 8));
  for (int i = 0; i < 40; ++i) file.insert(file.end(), record.begin(), record.end());
  const SpanSource source(AsBytes(file));
  PerfRecordReader reader(source);
  EXPECT_EQ(TypesIn(reader).size(), 40u);
}

PerfHeader WithEvent(std::uint64_t sample_type, bool has_ids_in_all = true) {
  PerfHeader header;
  header.events.push_back(
      {.sample_type = sample_type, .has_ids_in_all_records = has_ids_in_all, .name = ""});
  return header;
}

constexpr std::uint64_t kUsualFields = kPerfIdentifier | kPerfIp | kPerfThread | kPerfTime;

TEST(PerfTimeTest, ASamplesTimeStandsBehindTheFieldsBefore) {
  const Bytes body = Words({1, 2, 3, 4, 5});
  const PerfRecord sample = RecordOf(PerfRecordType::kSample, body);
  EXPECT_EQ(TimeOf(WithEvent(kUsualFields), sample), 4u);
  EXPECT_EQ(TimeOf(WithEvent(kPerfTime), sample), 1u);
  EXPECT_EQ(TimeOf(WithEvent(kPerfIp), sample), 0u) << "it has none";
  EXPECT_EQ(TimeOf(PerfHeader(), sample), 0u);
}

TEST(PerfTimeTest, OtherRecordsHaveItBeforeTheirEnd) {
  const Bytes body = Words({1, 2, 3, 4, 5});
  const PerfRecord record = RecordOf(PerfRecordType::kComm, body);
  EXPECT_EQ(TimeOf(WithEvent(kUsualFields), record), 4u) << "before the identifier";
  EXPECT_EQ(TimeOf(WithEvent(kUsualFields | kPerfCpu | kPerfId), record), 2u);
  EXPECT_EQ(TimeOf(WithEvent(kUsualFields, false), record), 0u);
  EXPECT_EQ(TimeOf(WithEvent(kUsualFields), RecordOf(PerfRecordType::kFinishedRound, body)), 0u)
      << "perf's own records have none";
  const Bytes short_body = Words({1});
  EXPECT_EQ(TimeOf(WithEvent(kUsualFields), RecordOf(PerfRecordType::kComm, short_body)), 0u);
}

TEST(PerfThreadTest, StandsBehindTheProcessBeforeTheTime) {
  const Bytes body = Join({Word(0), HalfWord(7), HalfWord(8), Word(1000), Word(10)});
  const PerfRecord record = RecordOf(PerfRecordType::kSwitch, body);
  EXPECT_EQ(ThreadOf(WithEvent(kUsualFields), record), 8u);
  EXPECT_EQ(ThreadOf(WithEvent(kUsualFields, false), record), 0u);
  EXPECT_EQ(ThreadOf(WithEvent(kPerfTime), record), 0u);
  EXPECT_EQ(ThreadOf(PerfHeader(), record), 0u);
  const Bytes short_body = Words({1, 2});
  EXPECT_EQ(ThreadOf(WithEvent(kUsualFields), RecordOf(PerfRecordType::kSwitch, short_body)), 0u);
}

TEST(IsSwitchOutTest, IsABitOfTheRecord) {
  EXPECT_TRUE(IsSwitchOut(RecordOf(PerfRecordType::kSwitch, {}, 1 << 13)));
  EXPECT_FALSE(IsSwitchOut(RecordOf(PerfRecordType::kSwitch, {}, 0)));
}

TEST(EventOfTest, IsFoundByItsId) {
  PerfHeader header = WithEvent(kUsualFields);
  header.events.push_back(header.events[0]);
  header.events_by_id = {{10, 0}, {11, 1}};
  const Bytes body = Words({11, 10, 0, 0, 0});
  const PerfRecord sample = RecordOf(PerfRecordType::kSample, body);
  EXPECT_EQ(EventOf(header, sample), 1u);
  header.events[0].sample_type = kPerfIp | kPerfId;
  EXPECT_EQ(EventOf(header, sample), 0u) << "the id stands second";
  header.events_by_id = {{12, 1}};
  EXPECT_EQ(EventOf(header, sample), 0u) << "an unknown one is of the first event";
}

TEST(ParseMapTest, TakesCode) {
  const Bytes body = MapBody(42, 0x1000, 0x200, 0x30, "/lib/a");
  const std::optional<PerfMap> map = ParseMap(RecordOf(PerfRecordType::kMmap2, body));
  ASSERT_TRUE(map.has_value());
  EXPECT_EQ(map->process, 42u);
  EXPECT_EQ(map->mapping, (Mapping{0x1000, 0x1200, 0x30, "/lib/a"}));
}

TEST(ParseMapTest, MayHaveABuildId) {
  const Bytes file = Join({{3, 0, 0, 0, 0xAB, 0xCD, 0xEF}, Bytes(17)});
  const Bytes body = MapBody(42, 0x1000, 0x200, 0, "/lib/a", file);
  EXPECT_EQ(ParseMap(RecordOf(PerfRecordType::kMmap2, body, 1 << 14))->mapping.build_id, "abcdef");
  EXPECT_EQ(ParseMap(RecordOf(PerfRecordType::kMmap2, body))->mapping.build_id, "")
      << "a device and an inode";
  const Bytes too_long = MapBody(42, 0x1000, 0x200, 0, "/lib/a", Bytes(24, 0xFF));
  EXPECT_EQ(ParseMap(RecordOf(PerfRecordType::kMmap2, too_long, 1 << 14))->mapping.build_id.size(),
            40u);
}

TEST(ParseMapTest, LeavesOutDataAndWhatIsBroken) {
  const Bytes data = MapBody(42, 0x1000, 0x200, 0, "/lib/a", Bytes(24), 3);
  EXPECT_FALSE(ParseMap(RecordOf(PerfRecordType::kMmap2, data)).has_value());
  const Bytes older = Join({HalfWord(1), HalfWord(1), Words({0x1000, 0x200, 0}), PaddedText("a")});
  EXPECT_TRUE(ParseMap(RecordOf(PerfRecordType::kMmap, older)).has_value());
  EXPECT_FALSE(ParseMap(RecordOf(PerfRecordType::kMmap, older, 1 << 13)).has_value());
  const Bytes broken(older.begin(), older.begin() + 31);
  EXPECT_FALSE(ParseMap(RecordOf(PerfRecordType::kMmap, broken)).has_value());
}

TEST(ParseSampleTest, TakesEachFieldAtItsPlace) {
  const PerfEvent event{.sample_type = kUsualFields | kPerfAddress | kPerfId | kPerfCpu |
                                       kPerfStreamId | kPerfPeriod | kPerfCallchain | kPerfRaw |
                                       kPerfRegisters | kPerfStack,
                        .registers = 0x180,
                        .name = ""};
  const Bytes body = Join({Words({10, 0x400100}), HalfWord(7), HalfWord(8), Word(99),
                           Words({1, 2, 3, 4}), Word(5000), Words({2, 0xA, 0xB}), HalfWord(4),
                           Bytes(4, 0xFF), Words({2, 0x51, 0x52}), Words({24, 1, 2, 3, 16})});
  PerfSample sample;
  ASSERT_TRUE(ParseSample(event, AsBytes(body), sample));
  EXPECT_EQ(sample.ip, 0x400100u);
  EXPECT_EQ(sample.process, 7u);
  EXPECT_EQ(sample.thread, 8u);
  EXPECT_EQ(sample.time, 99u);
  EXPECT_EQ(sample.period, 5000u);
  EXPECT_EQ(sample.raw.size(), 4u);
  ASSERT_EQ(sample.callchain.size(), 16u);
  EXPECT_EQ(PerfWord(sample.callchain, 1), 0xBu);
  EXPECT_EQ(sample.registers_kind, PerfRegisters::k64Bit);
  ASSERT_EQ(sample.registers.size(), 16u);
  EXPECT_EQ(PerfWord(sample.registers, 0), 0x51u);
  ASSERT_EQ(sample.stack.size(), 16u) << "so much of the copy was used";
  EXPECT_EQ(PerfWord(sample.stack, 1), 2u);
  for (std::size_t size = 0; size < body.size(); ++size)
    EXPECT_FALSE(ParseSample(event, AsBytes(body).first(size), sample)) << size;
}

TEST(ParseSampleTest, SkipsCountersAndBranches) {
  PerfEvent event{
      .sample_type = kPerfPeriod | kPerfRead | kPerfCallchain | kPerfBranches | kPerfRegisters,
      .read_format = 1 | 2 | 4,
      .registers = 1,
      .name = ""};
  PerfSample sample;
  const Bytes single =
      Join({Word(5), Words({1, 1, 1, 1}), Words({1, 0xA}), Words({1, 0, 0, 0}), Words({2, 0x51})});
  ASSERT_TRUE(ParseSample(event, AsBytes(single), sample));
  EXPECT_EQ(PerfWord(sample.callchain, 0), 0xAu);
  EXPECT_EQ(PerfWord(sample.registers, 0), 0x51u);
  event.read_format |= 8;  // a group of two
  event.has_branch_index = true;
  const Bytes group = Join({Word(5), Words({2, 1, 1, 1, 1, 1, 1}), Words({1, 0xB}),
                            Words({1, 9, 0, 0, 0}), Words({2, 0x52})});
  ASSERT_TRUE(ParseSample(event, AsBytes(group), sample));
  EXPECT_EQ(PerfWord(sample.callchain, 0), 0xBu);
  EXPECT_EQ(PerfWord(sample.registers, 0), 0x52u);
}

TEST(ParseSampleTest, WhatASampleDoesNotHaveIsTheEvents) {
  PerfSample sample;
  ASSERT_TRUE(
      ParseSample({.period = 77, .sample_type = kPerfIp, .name = ""}, AsBytes(Word(1)), sample));
  EXPECT_EQ(sample.period, 77u);
  ASSERT_TRUE(ParseSample({.sample_type = kPerfRegisters | kPerfStack, .name = ""},
                          AsBytes(Words({0, 0})), sample))
      << "a thread of the kernel has no registers and no stack";
  EXPECT_TRUE(sample.registers.empty());
  EXPECT_TRUE(sample.stack.empty());
}

TEST(ValueOfTest, TakesNumbersOfEachSizeAndSign) {
  const Bytes raw = Join({Word(0x8877665544332211), Word(~std::uint64_t{0})});
  const auto value = [&](TracepointField field) { return ValueOf(field, AsBytes(raw)); };
  EXPECT_EQ(value({.offset = 0, .bytes = 1}), 0x11u);
  EXPECT_EQ(value({.offset = 1, .bytes = 2}), 0x3322u);
  EXPECT_EQ(value({.offset = 4, .bytes = 4}), 0x88776655u);
  EXPECT_EQ(value({.offset = 0, .bytes = 8}), 0x8877665544332211u);
  EXPECT_EQ(value({.offset = 0, .bytes = 4, .is_signed = true}), 0x44332211u);
  for (const std::uint32_t bytes : {1u, 2u, 4u, 8u}) {
    EXPECT_EQ(value({.offset = 8, .bytes = bytes, .is_signed = true}), 0u) << "-1, " << bytes;
    EXPECT_EQ(value({.offset = 16 - bytes, .bytes = bytes}), ~std::uint64_t{0} >> (64 - 8 * bytes));
    EXPECT_FALSE(value({.offset = 17 - bytes, .bytes = bytes}).has_value()) << "cut off";
  }
  EXPECT_FALSE(value({.offset = 0xFFFFFFFF, .bytes = 8}).has_value());
  EXPECT_FALSE(value({.offset = 0, .bytes = 0}).has_value());
  EXPECT_FALSE(value({.offset = 0, .bytes = 16}).has_value());
}

// Gives records whose misc is their number, and collects those that come out.
class PerfOrderTest : public ::testing::Test {
 protected:
  void Add(std::uint16_t number, std::uint64_t time) {
    const Bytes body(number, static_cast<std::uint8_t>(number));
    EXPECT_TRUE(order_.Add(RecordOf(PerfRecordType::kComm, body, number), time).ok());
  }

  std::vector<int> given_;
  PerfOrder order_{[this](const PerfRecord& record, std::uint64_t) {
    EXPECT_EQ(record.body.size(), record.misc);
    for (const std::byte byte : record.body) EXPECT_EQ(static_cast<int>(byte), record.misc);
    given_.push_back(record.misc);
    return given_.back() == 13 ? absl::InternalError("refused") : absl::OkStatus();
  }};
};

TEST_F(PerfOrderTest, GivesRecordsInTheOrderOfTheirTimes) {
  Add(1, 30);
  Add(2, 10);
  Add(3, 30);
  Add(4, 20);
  EXPECT_THAT(given_, IsEmpty());
  EXPECT_TRUE(order_.Finish().ok());
  EXPECT_THAT(given_, ElementsAre(2, 4, 1, 3)) << "of equal times as they came";
}

TEST_F(PerfOrderTest, AfterARoundNoneComesThatIsOlderThanTheRoundBefore) {
  Add(1, 20);
  Add(2, 10);
  EXPECT_TRUE(order_.EndRound().ok());
  EXPECT_THAT(given_, IsEmpty()) << "another CPU may still have older ones";
  Add(3, 40);
  Add(4, 15);
  EXPECT_TRUE(order_.EndRound().ok());
  EXPECT_THAT(given_, ElementsAre(2, 4, 1));
  Add(5, 30);
  EXPECT_TRUE(order_.EndRound().ok());
  EXPECT_THAT(given_, ElementsAre(2, 4, 1, 5, 3));
}

TEST_F(PerfOrderTest, ReturnsTheErrorsOfWhatTakesThem) {
  Add(13, 1);
  EXPECT_EQ(order_.Finish().code(), absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace strobe::internal
