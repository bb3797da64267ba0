#include "../../../src/cli/readers/read_perf.h"

#include <fstream>
#include <string>
#include <vector>

#include "../../../src/symbolize/images/byte_source.h"
#include "../perf_bytes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/test_system.h"

namespace strobe::internal {
namespace {

using ::testing::HasSubstr;

constexpr auto kAttributes = static_cast<PerfRecordType>(64);  // of a pipe's event

// A recording through a pipe: the event's attributes, then the records.
Bytes PipeFile(const Bytes& records, const AttributeBytes& attributes = {}) {
  return Join({{'P', 'E', 'R', 'F', 'I', 'L', 'E', '2'},
               Word(16),
               RecordBytes(kAttributes, Join({attributes.All(), Word(10)})),
               records});
}
absl::StatusOr<LoadedProfile> Read(const Bytes& file) {
  const SpanSource source(AsBytes(file));
  const ByteSource* const sources[] = {&source};
  const NoSymbolFiles files;
  return ReadPerfData(sources, {.files = files, .kernel_symbols = ""});
}

TEST(ReadPerfTest, ARecordingWithoutSamplesIsAProfile) {
  const auto loaded = Read(PipeFile(RecordBytes(PerfRecordType::kComm, NameBody(7, 7, "program"))));
  ASSERT_TRUE(loaded.ok()) << loaded.status();
  EXPECT_EQ(loaded->format, "perf.data");
  EXPECT_TRUE(loaded->profile.samples.empty());
  EXPECT_EQ(loaded->profile.value_types[0].type, "samples");
  ASSERT_FALSE(loaded->comments.empty());
  EXPECT_THAT(loaded->comments.back(), HasSubstr("0 samples, 0 lost"));
}

TEST(ReadPerfTest, AFileWithoutEventsIsRefused) {
  const auto loaded = Read(Join({{'P', 'E', 'R', 'F', 'I', 'L', 'E', '2'}, Word(16)}));
  EXPECT_EQ(loaded.status().code(), absl::StatusCode::kInvalidArgument);
}

TEST(ReadPerfTest, BrokenFilesAreRefusedOrRead) {
  const Bytes good = PipeFile(RecordBytes(PerfRecordType::kComm, NameBody(7, 7, "program")));
  EXPECT_FALSE(Read({}).ok());
  for (std::size_t size = 0; size < good.size(); ++size) {
    const auto loaded = Read(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size)));
    EXPECT_TRUE(loaded.ok() || loaded.status().code() == absl::StatusCode::kInvalidArgument)
        << size << loaded.status();
  }
  for (std::size_t at = 0; at < good.size(); ++at) {
    Bytes bad = good;
    bad[at] ^= 0xFF;
    const auto loaded = Read(bad);
    EXPECT_TRUE(loaded.ok() || !loaded.status().message().empty()) << at;
  }
}

TEST(ReadPerfTest, AnErrorBeginsWithTheFilesName) {
  const testing::TemporaryDirectory directory;
  const std::string path = (directory.path() / "perf.data").string();
  const NoSymbolFiles files;
  const PerfOptions options{.files = files, .kernel_symbols = ""};
  EXPECT_THAT(std::string(ReadPerfFile(path, options).status().message()),
              ::testing::StartsWith(path));
  std::ofstream(path) << "text";
  EXPECT_THAT(std::string(ReadPerfFile(path, options).status().message()),
              ::testing::StartsWith(path));
  const Bytes good = PipeFile({});
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(good.data()), static_cast<std::streamsize>(good.size()));
  const auto loaded = ReadPerfFile(path, options);
  EXPECT_TRUE(loaded.ok()) << loaded.status();
}

}  // namespace
}  // namespace strobe::internal
