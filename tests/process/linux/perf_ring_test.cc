// The ring of perf events, and what is said where they are refused: without a kernel.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "cli/perf/jit_names.h"
#include "cli/perf/linux/perf_events.h"
#include "cli/perf/linux/perf_request.h"
#include "cli/perf/linux/perf_rings.h"
#include "cli/perf/off_cpu_times.h"
#include "cli/perf/perf_event_table.h"
#include "cli/perf/perf_header.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace strobe::internal {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// A ring that a test writes as the kernel does.
class WrittenRing {
 public:
  explicit WrittenRing(std::size_t bytes) : data_(bytes) {}

  // A record whose header says `size`, with a body that counts from `first`.
  void Write(std::uint32_t type, std::uint16_t size, std::uint8_t first) {
    const std::uint16_t misc = 2;
    Put(&type, sizeof(type));
    Put(&misc, sizeof(misc));
    Put(&size, sizeof(size));
    for (int i = 8; i < size; ++i, ++first) Put(&first, 1);
  }
  void Put(const void* bytes, std::size_t count) {
    const auto* from = static_cast<const std::byte*>(bytes);
    for (std::size_t i = 0; i < count; ++i) data_[head++ % data_.size()] = from[i];
  }
  [[nodiscard]] const std::vector<std::byte>& data() const { return data_; }

  std::uint64_t head = 0;

 private:
  std::vector<std::byte> data_;
};

std::vector<int> Numbers(std::span<const std::byte> bytes) {
  std::vector<int> numbers;
  for (const std::byte byte : bytes) numbers.push_back(static_cast<int>(byte));
  return numbers;
}

TEST(PerfRing, GivesRecordsInTheirOrder) {
  WrittenRing ring(64);
  ring.Write(9, 16, 1);
  ring.Write(3, 8, 0);
  PerfRingReader reader(ring.data());
  PerfRecord record;
  reader.Begin(0, ring.head);
  ASSERT_TRUE(reader.Next(record));
  EXPECT_EQ(record.type, PerfRecordType::kSample);
  EXPECT_EQ(record.misc, 2);
  EXPECT_THAT(Numbers(record.body), ElementsAre(1, 2, 3, 4, 5, 6, 7, 8));
  ASSERT_TRUE(reader.Next(record));
  EXPECT_EQ(record.type, PerfRecordType::kComm);
  EXPECT_TRUE(record.body.empty());
  EXPECT_FALSE(reader.Next(record));
  EXPECT_EQ(reader.tail(), ring.head);
  EXPECT_EQ(reader.broken(), 0u);
}

// At each place that a record's header or body can have across the ring's end.
TEST(PerfRing, JoinsARecordThatGoesAroundItsEnd) {
  for (std::uint64_t begin = 0; begin < 64; begin += 8) {
    WrittenRing ring(64);
    ring.head = begin + (std::uint64_t{1} << 40);
    const std::uint64_t tail = ring.head;
    ring.Write(9, 40, 7);
    PerfRingReader reader(ring.data());
    PerfRecord record;
    reader.Begin(tail, ring.head);
    ASSERT_TRUE(reader.Next(record)) << begin;
    ASSERT_EQ(record.body.size(), 32u);
    EXPECT_EQ(Numbers(record.body).front(), 7);
    EXPECT_EQ(Numbers(record.body).back(), 38);
    EXPECT_FALSE(reader.Next(record));
  }
}

TEST(PerfRing, AFullRingIsOneRecord) {
  WrittenRing ring(64);
  ring.head = 24;
  ring.Write(9, 64, 0);
  PerfRingReader reader(ring.data());
  PerfRecord record;
  reader.Begin(24, ring.head);
  ASSERT_TRUE(reader.Next(record));
  EXPECT_EQ(record.body.size(), 56u);
  EXPECT_EQ(reader.broken(), 0u);
}

// Sizes that no record has, one that leads beyond the head, and places that no writer can have: the
// rest is skipped once, and nothing outside of the ring is read.
TEST(PerfRing, SkipsWhatIsNoRecord) {
  for (const int wrong : {0, 1, 7, 24, 64, 65535}) {
    std::vector<std::byte> data(64);
    const auto size = static_cast<std::uint16_t>(wrong);
    std::memcpy(data.data() + 6, &size, sizeof(size));
    PerfRingReader reader(data);
    PerfRecord record;
    reader.Begin(0, 16);
    EXPECT_FALSE(reader.Next(record)) << size;
    EXPECT_EQ(reader.tail(), 16u);
    EXPECT_FALSE(reader.Next(record));
    EXPECT_EQ(reader.broken(), 1u);
  }
  std::vector<std::byte> data(64, std::byte{8});
  for (const std::uint64_t head : {std::uint64_t{65}, std::uint64_t{4}, ~std::uint64_t{0}}) {
    PerfRingReader reader(data);
    PerfRecord record;
    reader.Begin(0, head);
    EXPECT_FALSE(reader.Next(record)) << head;
    EXPECT_EQ(reader.tail(), head);
    EXPECT_EQ(reader.broken(), 1u);
  }
}

// A record that is written while the reader is at work comes with the next reading.
TEST(PerfRing, ReadsUpToTheHeadOnly) {
  WrittenRing ring(64);
  ring.Write(9, 16, 1);
  const std::uint64_t head = ring.head;
  ring.Write(9, 16, 50);
  PerfRingReader reader(ring.data());
  PerfRecord record;
  reader.Begin(0, head);
  EXPECT_TRUE(reader.Next(record));
  EXPECT_FALSE(reader.Next(record));
  reader.Begin(reader.tail(), ring.head);
  ASSERT_TRUE(reader.Next(record));
  EXPECT_EQ(Numbers(record.body).front(), 50);
}

TEST(PerfRequest, ReadsAList) {
  const auto requests = ParsePerfRequests("task-clock,cycles,page-faults,context-switches", "/x");
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 4u);
  EXPECT_TRUE((*requests)[0].is_clock());
  EXPECT_TRUE((*requests)[1].has_rate());
  EXPECT_FALSE((*requests)[2].has_rate() || (*requests)[2].is_of_kernel());
  EXPECT_TRUE((*requests)[3].is_of_kernel());
}

// The kernel gives the samples of two events of one kind the id of one.
TEST(PerfRequest, TwoOfOneEventAreOne) {
  for (const char* const list : {"off-cpu,context-switches", "context-switches,off-cpu"}) {
    const auto requests = ParsePerfRequests(list, "/x");
    ASSERT_TRUE(requests.ok()) << requests.status();
    ASSERT_EQ(requests->size(), 1u) << list;
    EXPECT_TRUE(requests->front().is_off_cpu && requests->front().is_switch) << list;
  }
  const auto requests = ParsePerfRequests("page-faults,off-cpu,page-faults,off-cpu", "/x");
  ASSERT_TRUE(requests.ok()) << requests.status();
  ASSERT_EQ(requests->size(), 2u);
  EXPECT_FALSE((*requests)[1].is_switch);
}

TEST(PerfRequest, TakesAliasesAndModifiers) {
  const auto requests =
      ParsePerfRequests("cs,faults:u,cpu-cycles:k,migrations,task-clock:uk", "/x");
  ASSERT_TRUE(requests.ok()) << requests.status();
  const std::vector<PerfRequest>& all = *requests;
  ASSERT_EQ(all.size(), 5u);
  EXPECT_EQ(all[0].name, "context-switches");
  EXPECT_EQ(all[1].name, "page-faults");
  EXPECT_TRUE(all[1].counts_user && !all[1].counts_kernel);
  EXPECT_EQ(all[2].name, "cycles");
  EXPECT_TRUE(!all[2].counts_user && all[2].counts_kernel);
  EXPECT_EQ(all[3].name, "cpu-migrations");
  EXPECT_TRUE(all[4].counts_user && all[4].counts_kernel);
  EXPECT_THAT(ParsePerfRequests("cs:u", "/x").status().message(), HasSubstr("never counted"));
  EXPECT_THAT(ParsePerfRequests("off-cpu:u", "/x").status().message(), HasSubstr("never counted"));
  EXPECT_THAT(ParsePerfRequests("cycles:q", "/x").status().message(), HasSubstr("tracepoint"));
}

TEST(PerfRequest, TheErrorNamesAllEvents) {
  const std::string error(ParsePerfRequests("cycle", "/x").status().message());
  for (const char* name : {"cycles", "ref-cycles", "LLC-loads", "off-cpu", ":u", "strobe events"})
    EXPECT_THAT(error, HasSubstr(name));
}

TEST(PerfRequest, SaysWhatIsNoEvent) {
  EXPECT_THAT(ParsePerfRequests("", "/x").status().message(), HasSubstr("no event"));
  EXPECT_THAT(ParsePerfRequests("dummy", "/x").status().message(), HasSubstr("no event dummy"));
  EXPECT_THAT(ParsePerfRequests("a:b", "/x").status().message(), HasSubstr("tracepoint a:b in /x"));
  std::string many;
  for (const KnownPerfEvent& event : kPerfEventTable) {
    if (IsRecordable(event)) many += std::string(event.name) + ",";
  }
  EXPECT_THAT(ParsePerfRequests(many, "/x").status().message(), HasSubstr("more than"));
}

TEST(PerfRefusal, NamesTheSettingThatForbidsIt) {
  const PerfRefusal refusal{.event = "cycles", .target = "process 12", .paranoid = 2};
  const auto text = [&](int error, auto change) {
    PerfRefusal changed = refusal;
    changed.error = error;
    change(changed);
    return RefusalText(changed);
  };
  const auto nothing = [](PerfRefusal&) {};
  EXPECT_THAT(text(EACCES, [](PerfRefusal& it) { it.paranoid = 4; }),
              HasSubstr("kernel.perf_event_paranoid is 4"));
  EXPECT_THAT(text(EPERM, [](PerfRefusal& it) { it.has_filter = true; }), HasSubstr("seccomp"));
  EXPECT_THAT(text(EACCES, [](PerfRefusal& it) { it.untraced = "it is another user's"; }),
              HasSubstr("another user's"));
  EXPECT_THAT(text(EACCES, [](PerfRefusal& it) { it.is_of_cpus = true; }),
              HasSubstr("kernel.perf_event_paranoid is 2, and 0 would allow them"));
  const auto of_cpus_under_a_filter = [](PerfRefusal& it) { it.is_of_cpus = it.has_filter = true; };
  EXPECT_THAT(text(EPERM, of_cpus_under_a_filter), HasSubstr("seccomp"));
  EXPECT_THAT(text(EACCES, of_cpus_under_a_filter), HasSubstr("kernel.perf_event_paranoid is 2"));
  EXPECT_THAT(text(EPERM, nothing), HasSubstr("security module"));
  EXPECT_THAT(text(ENOSYS, nothing), HasSubstr("kernel has none"));
  EXPECT_THAT(text(ENOENT, nothing), HasSubstr("task-clock works"));
  EXPECT_THAT(text(EINVAL, [](PerfRefusal& it) { it.most_hz = 12'500; }), HasSubstr("-F 12500"));
  EXPECT_THAT(text(EMFILE, nothing), HasSubstr("ulimit -n"));
  EXPECT_THAT(text(ESRCH, nothing), HasSubstr("process 12 has ended"));
  for (const int error : {ENOSYS, EACCES, EPERM})
    EXPECT_THAT(text(error, nothing), HasSubstr("Strobe in the program")) << error;
}

TEST(JitFunctions, FindsTheFunctionThatIsThereNow) {
  JitFunctions functions;
  functions.Add("2000 10 second one\n1000 20 first\nno line\n3000\n4000 10\n");
  EXPECT_EQ(functions.Find(0x1000), "first");
  EXPECT_EQ(functions.Find(0x101F), "first");
  EXPECT_EQ(functions.Find(0x2005), "second one");
  for (const Address address : {0x0, 0xFFF, 0x1020, 0x2010, 0x3000, 0x4000})
    EXPECT_EQ(functions.Find(address), "") << address;
  functions.Add("1000 20 replaced\nffffffffffffffff 5 around");
  EXPECT_EQ(functions.Find(0x1000), "replaced");
  EXPECT_EQ(functions.Find(~Address{0}), "");
}

TEST(JitFunctions, LetsTheLaterOfOverlappingRangesCount) {
  JitFunctions functions;
  functions.Add("1000 100 old\n1040 20 inner\n1080 100 behind\n1030 60 later\n");
  EXPECT_EQ(functions.Find(0x102F), "old");
  EXPECT_EQ(functions.Find(0x1030), "later");
  EXPECT_EQ(functions.Find(0x1050), "later");
  EXPECT_EQ(functions.Find(0x108F), "later");
  EXPECT_EQ(functions.Find(0x1090), "");  // the beginning of "behind" is gone, and with it all
}

TEST(JitNames, AProcessInAContainerWritesItsListByItsOwnId) {
  EXPECT_EQ(JitListPath(77, ""), "/tmp/perf-77.map");
  EXPECT_EQ(JitListPath(77, "77"), "/tmp/perf-77.map");
  EXPECT_EQ(JitListPath(77, "77\t5\t1"), "/tmp/perf-1.map");
}

TEST(OffCpuTimes, AnAbsenceLastsFromTheLastDepartureToTheReturn) {
  OffCpuTimes times;
  EXPECT_FALSE(times.Return(1, 5).has_value());
  times.Leave(1, {.stack = 7, .labels = 8}, 10);
  times.Leave(1, {.stack = 9, .labels = 8}, 20);  // a return is missing
  times.Leave(2, {.stack = 1, .labels = 1}, 20);
  const std::optional<OffCpuTimes::Absence> absence = times.Return(1, 50);
  ASSERT_TRUE(absence.has_value());
  EXPECT_EQ(absence->duration_ns, 30u);
  EXPECT_EQ(absence->place.stack, 9u);
  EXPECT_FALSE(times.Return(1, 60).has_value()) << "once";
  times.Leave(3, {}, 100);
  times.Forget(3);
  std::vector<std::uint64_t> until_the_end;
  times.VisitAbsent(
      10, [&](const OffCpuTimes::Absence& it) { until_the_end.push_back(it.duration_ns); });
  EXPECT_THAT(until_the_end, ElementsAre(0u)) << "no absence is less than nothing";
}

TEST(PerfRecords, WaitsForTheEndOfARecord) {
  const std::array<unsigned char, 16> bytes{68, 0, 0, 0, 2, 0, 16, 0, 1, 2, 3, 4, 5, 6, 7, 8};
  const auto all = std::as_bytes(std::span(bytes));
  PerfRecord record;
  for (std::size_t size = 0; size < all.size(); ++size)
    EXPECT_EQ(*ParseRecord(all.first(size), record), 0u) << size;
  EXPECT_EQ(*ParseRecord(all, record), 16u);
  EXPECT_EQ(record.type, PerfRecordType::kFinishedRound);
  EXPECT_EQ(record.misc, 2);
  EXPECT_EQ(record.body.size(), 8u);
  const std::array<std::byte, 8> none{};
  EXPECT_FALSE(ParseRecord(none, record).ok()) << "a record without a size";
}

}  // namespace
}  // namespace strobe::internal
