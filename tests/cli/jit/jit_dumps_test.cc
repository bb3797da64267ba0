#include "../../../src/cli/jit/jit_dumps.h"

#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "../../../src/cli/perf/perf_account.h"
#include "../made_profile.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "jit_dump_bytes.h"
#include "platform/test_system.h"
#include "process/fake_image.h"

namespace strobe::internal {
namespace {

using ::testing::UnorderedElementsAre;

constexpr std::uint32_t kProcess = 42;
constexpr Address kGenerated = 0x10000;

class JitDumpsTest : public ::testing::Test {
 protected:
  JitDumpsTest() { Write(DumpHeader()); }

  // What the process writes, at once.
  void Write(const Bytes& bytes) {
    file_.write(reinterpret_cast<const char*>(bytes.data()),
                static_cast<std::streamsize>(bytes.size()));
    file_.flush();
  }

  const testing::TemporaryDirectory directory_;
  const std::string path_ = (directory_.path() / "jit-42.dump").string();
  std::ofstream file_{path_, std::ios::binary};
  testing::FakeFiles files_;
};

TEST_F(JitDumpsTest, AreFoundByWhatProcessesMap) {
  ProcessTable table(files_);
  JitDumps dumps;
  EXPECT_EQ(dumps.Of(kProcess, table.Find(kProcess)), JitDumps::kNone);
  table.Map(kProcess, {0x5000, 0x6000, 0, "/bin/program"});
  EXPECT_EQ(dumps.Of(kProcess, table.Find(kProcess)), JitDumps::kNone);
  table.Map(kProcess, {0x7000, 0x8000, 0, directory_.path() / "jit-43.dump"});
  EXPECT_EQ(dumps.Of(kProcess, table.Find(kProcess)), JitDumps::kNone) << "there is no such file";
  table.Map(kProcess, {0x7000, 0x8000, 0, path_});
  const std::uint32_t number = dumps.Of(kProcess, table.Find(kProcess));
  ASSERT_NE(number, JitDumps::kNone);
  EXPECT_EQ(dumps.Of(kProcess, table.Find(kProcess)), number);
  // A child goes on with the code of its parent.
  table.Fork(kProcess, 77);
  EXPECT_NE(dumps.Of(77, table.Find(77)), JitDumps::kNone);
  table.Exec(kProcess);
  EXPECT_EQ(dumps.Of(kProcess, table.Find(kProcess)), JitDumps::kNone);
}

TEST_F(JitDumpsTest, AreReadToTheEndOnceTheyAreRemoved) {
  ProcessTable table(files_);
  table.Map(kProcess, {0x7000, 0x8000, 0, path_});
  JitDumps dumps;
  const std::uint32_t number = dumps.Of(kProcess, table.Find(kProcess));
  ASSERT_NE(number, JitDumps::kNone);
  EXPECT_FALSE(dumps.Find(number, kGenerated, {}).has_value());
  Write(DumpLoad(10, kGenerated, 0x100, "code"));
  std::filesystem::remove(path_);
  EXPECT_EQ(dumps.Find(number, kGenerated, {}), "code");
}

TEST_F(JitDumpsTest, AreReadOneAtATime) {
  ProcessTable table(files_);
  table.Map(kProcess, {0x7000, 0x8000, 0, path_});
  table.Fork(kProcess, 77);
  JitDumps dumps;
  const std::uint32_t one = dumps.Of(kProcess, table.Find(kProcess));
  const std::uint32_t other = dumps.Of(77, table.Find(77));
  ASSERT_NE(one, other);
  Write(DumpLoad(10, kGenerated, 0x100, "code"));
  for (const std::uint32_t number : {one, other, one})
    EXPECT_EQ(dumps.Find(number, kGenerated, {}), "code");
  Write(DumpLoad(20, kGenerated, 0x100, "replaced"));
  EXPECT_EQ(dumps.Find(one, kGenerated, {}), "");
}

class JitDumpProfileTest : public JitDumpsTest {
 protected:
  void AddEvent(std::uint32_t clock) {
    const AttributeBytes attributes{.sample_type = kPerfIp | kPerfThread | kPerfTime,
                                    .flags = kIdsInAllFlag | kClockFlag,
                                    .clock = clock};
    ASSERT_TRUE(header_.AddEvent(AsBytes(attributes.All()), {}).ok());
    Take(PerfRecordType::kMmap2, MapBody(kProcess, 0x7000, 0x1000, 0, path_));
    Take(PerfRecordType::kMmap2, MapBody(kProcess, kGenerated, 0x1000, 0, "//anon"));
  }
  void Sample(std::uint64_t time, Address ip) {
    constexpr std::uint16_t kFromUser = 2;
    const Bytes body = Join({Word(ip), HalfWord(kProcess), HalfWord(kProcess), Word(time)});
    EXPECT_TRUE(account_.Take(RecordOf(PerfRecordType::kSample, body, kFromUser), time).ok());
  }
  void Take(PerfRecordType type, const Bytes& body) {
    EXPECT_TRUE(account_.Take(RecordOf(type, body), 0).ok());
  }
  std::vector<std::string> Rows() {
    account_.UseGenerated([](std::uint32_t process, Address address) -> std::string_view {
      EXPECT_EQ(process, kProcess);
      return address == kGenerated + 0x500 ? "py::listed:/a.py" : "";
    });
    const absl::StatusOr<LoadedProfile> loaded = account_.Finish();
    EXPECT_TRUE(loaded.ok()) << loaded.status();
    return loaded.ok() ? RowsOf(*loaded) : std::vector<std::string>();
  }

  PerfHeader header_;
  PerfAccount account_{header_, files_, {}, ""};
};

constexpr std::uint64_t kSecond = 1'000'000'000;

// The compiler writes its file after the samples have been read.
TEST_F(JitDumpProfileTest, SamplesHaveTheNameOfTheirTime) {
  constexpr std::uint32_t kMonotonic = 1;
  AddEvent(kMonotonic);
  for (std::uint64_t second = 1; second <= 6; ++second) Sample(second * kSecond, kGenerated + 0x10);
  Sample(6 * kSecond, kGenerated + 0x500);
  Sample(6 * kSecond, kGenerated + 0x600);
  Write(DumpLoad(kSecond / 2, kGenerated, 0x100, "first"));
  Write(DumpLoad(3 * kSecond + 1, kGenerated, 0x100, "second"));
  EXPECT_THAT(Rows(),
              UnorderedElementsAre("first 3 3000", "second 3 3000", "listed 1 1000", "? 1 1000"));
}

TEST_F(JitDumpProfileTest, SamplesOfAnotherClockHaveANameThatWasNeverReplaced) {
  constexpr std::uint32_t kRealTime = 0;
  AddEvent(kRealTime);
  Sample(kSecond, kGenerated + 0x10);
  Sample(kSecond, kGenerated + 0x210);
  Sample(9 * kSecond, kGenerated + 0x210);
  Write(DumpLoad(5 * kSecond, kGenerated, 0x100, "first"));
  Write(DumpLoad(6 * kSecond, kGenerated, 0x100, "second"));
  Write(DumpLoad(7 * kSecond, kGenerated + 0x200, 0x100, "alone"));
  EXPECT_THAT(Rows(), UnorderedElementsAre("? 1 1000", "alone 2 2000"));
}

}  // namespace
}  // namespace strobe::internal
