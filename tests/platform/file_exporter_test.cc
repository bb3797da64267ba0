#include "strobe/platform/file_exporter.h"

#include <algorithm>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/file_exporter_fixture.h"
#include "strobe/testing/exporter_conformance.h"
#include "strobe/testing/fakes/manual_platform.h"

namespace strobe::testing {

struct FileHarness {
  using Exporter = FileExporter;
  FileHarness() : directory(temporary.path() / "profiles") {}
  FileExporter Make() const { return FileExporter({.directory = directory.string()}); }
  std::vector<std::string> Delivered() const {
    return fs::is_directory(directory) ? List(directory) : std::vector<std::string>();
  }
  std::string Read(const std::string& where) const { return ReadFile(where); }
  // A file where the directory should be stops even root.
  void Break() const { WriteFile(directory); }
  void Mend() const { fs::remove(directory); }

  TemporaryDirectory temporary;
  fs::path directory;
};
INSTANTIATE_TYPED_TEST_SUITE_P(File, ExporterConformance, FileHarness);

namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::StartsWith;

TEST_F(FileExporterTest, NameIsProgramProcessSequenceAndSuffix) {
  FileExporter exporter(Options());
  const auto path = Export(exporter, 12);
  ASSERT_TRUE(path.ok()) << path.status().ToString();
  EXPECT_EQ(*path, (directory_ / "server.77.12.pb.gz").generic_string());
  EXPECT_EQ(ReadFile(*path), "bytes");
  EXPECT_THAT(List(directory_), ElementsAre("server.77.12.pb.gz")) << "no temporary is left";
}

TEST_F(FileExporterTest, RelativeDirectoryStaysWhereItWasAtConstruction) {
  const fs::path before = fs::current_path();
  fs::current_path(directory_);
  FileExporter exporter(ExporterOptions{.directory = "profiles/"});
  fs::current_path("/");
  const auto path = Export(exporter, 0);
  fs::current_path(before);
  ASSERT_TRUE(path.ok()) << path.status().ToString();
  EXPECT_THAT(List(directory_ / "profiles"), ElementsAre("server.77.0.pb.gz"));
}

// Linux takes any bytes for a name, Windows has no such name: the file goes to one that is near it.
TEST_F(FileExporterTest, ADirectoryMayHaveANameThatIsNoUtf8) {
  FileExporter exporter(
      ExporterOptions{.directory = directory_.string() + "/caf\xE9/\xC3\xA9t\xC3\xA9"});
  const auto path = Export(exporter, 0);
  ASSERT_TRUE(path.ok()) << path.status().ToString();
  EXPECT_THAT(*path, ::testing::EndsWith("/\xC3\xA9t\xC3\xA9/server.77.0.pb.gz"));
  EXPECT_EQ(std::distance(fs::recursive_directory_iterator(directory_),
                          fs::recursive_directory_iterator()),
            3)
      << "two levels and a file";
}

TEST_F(FileExporterTest, ProgramNameCannotLeaveTheDirectory) {
  FileExporter exporter(Options());
  for (const char* program : {"../../etc/passwd", "..", "", "a b;$(c)\n", "\xFF"}) {
    const auto path = Export(exporter, 0, "bytes", program);
    ASSERT_TRUE(path.ok()) << path.status().ToString();
    EXPECT_EQ(fs::path(*path).parent_path(), directory_) << program;
  }
  ASSERT_TRUE(Export(exporter, 0, "bytes", std::string(10'000, 'n')).ok());
  EXPECT_THAT(List(directory_),
              AllOf(Contains("program.77.0.pb.gz"), Contains("a_b___c__.77.0.pb.gz"),
                    Contains("_..77.0.pb.gz"), Contains("_._.._etc_passwd.77.0.pb.gz"),
                    Contains(std::string(128, 'n') + ".77.0.pb.gz")));
}

TEST_F(FileExporterTest, NothingIsOverwritten) {
  FileExporter first(Options()), second(Options());
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(Export(first, i, "first run").ok());
  // The same process id again, from sequence 0, as a container that was started again.
  const auto path = Export(second, 0, "second run");
  ASSERT_TRUE(path.ok()) << path.status().ToString();
  EXPECT_EQ(*path, (directory_ / "server.77.3.pb.gz").generic_string());
  EXPECT_EQ(ReadFile(directory_ / "server.77.0.pb.gz"), "first run");
  EXPECT_EQ(ReadFile(*path), "second run");
}

TEST_F(FileExporterTest, ExportersOfOneProcessDoNotDisturbEachOther) {
  constexpr int kThreads = 4, kExports = 10;
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t) {
    threads.emplace_back([this, t] {
      FileExporter exporter(Options());
      for (int i = 0; i < kExports; ++i) {
        const auto path = Export(exporter, static_cast<std::uint64_t>(i), absl::StrCat(t, "/", i));
        EXPECT_TRUE(path.ok()) << path.status().ToString();
        EXPECT_EQ(ReadFile(path.value_or("")), absl::StrCat(t, "/", i));
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(List(directory_).size(), static_cast<std::size_t>(kThreads * kExports));
}

TEST_F(FileExporterTest, OldestBeyondTheCountAreRemoved) {
  FileExporter exporter(Options(3));
  for (std::uint64_t i = 0; i < 6; ++i) ASSERT_TRUE(Export(exporter, i).ok());
  EXPECT_THAT(List(directory_),
              ElementsAre("server.77.3.pb.gz", "server.77.4.pb.gz", "server.77.5.pb.gz"));
}

TEST_F(FileExporterTest, AgeComesBeforeSequence) {
  WriteFile(directory_ / "server.500.0.pb.gz");
  WriteFile(directory_ / "server.400.9.pb.gz");
  MakeOlder("server.500.0.pb.gz", 2);
  MakeOlder("server.400.9.pb.gz", 5);
  FileExporter exporter(Options(2));
  ASSERT_TRUE(Export(exporter, 0).ok());
  EXPECT_THAT(List(directory_), ElementsAre("server.500.0.pb.gz", "server.77.0.pb.gz"));
}

TEST_F(FileExporterTest, OldestBeyondTheBytesAreRemovedButNeverTheNewest) {
  FileExporter exporter(Options(100, 1000));
  for (std::uint64_t i = 0; i < 5; ++i)
    ASSERT_TRUE(Export(exporter, i, std::string(400, 'x')).ok());
  EXPECT_THAT(List(directory_), ElementsAre("server.77.3.pb.gz", "server.77.4.pb.gz"));
  ASSERT_TRUE(Export(exporter, 5, std::string(5000, 'x')).ok());
  EXPECT_THAT(List(directory_), ElementsAre("server.77.5.pb.gz"));
}

TEST_F(FileExporterTest, ProfilesOfAllFormatsShareOneQuota) {
  WriteFile(directory_ / "server.60.0.pb.gz");
  WriteFile(directory_ / "server.60.1.mine");
  WriteFile(directory_ / "server.60.2.theirs");
  WriteFile(directory_ / ".server.60.3.pb.gz.9.tmp");
  MakeOlder("server.60.0.pb.gz", 3);
  MakeOlder("server.60.1.mine", 2);
  MakeOlder("server.60.2.theirs", 4);
  MakeOlder(".server.60.3.pb.gz.9.tmp", 4);
  FileExporter exporter(Options(2));
  ASSERT_TRUE(Export(exporter, 5, "bytes", "server", 77, ".mine").ok());
  EXPECT_THAT(List(directory_),
              ElementsAre("server.60.1.mine", "server.60.2.theirs", "server.77.5.mine"))
      << "the oldest goes whatever its format; a suffix of no encoder is not a profile";
}

TEST_F(FileExporterTest, FilesOfOthersStay) {
  const std::vector<std::string> others = {
      "server2.77.0.pb.gz",   "server.77.pb.gz",          "server.77.0.pb.gz.bak",
      "server.x.0.pb.gz",     "server.77.-1.pb.gz",       "server.77.0.pb",
      "serve.77.0.pb.gz",     "my.server.77.0.pb.gz",     "notes.txt",
      ".server.77.0.pb.gz.x", ".server2.7.0.pb.gz.1.tmp", "server.7.7.7.pb.gz"};
  for (const std::string& name : others) {
    WriteFile(directory_ / name);
    MakeOlder(name, 48);
  }
  fs::create_directory(directory_ / "server.77.99.pb.gz");
  FileExporter exporter(Options(1, 1));
  ASSERT_TRUE(Export(exporter, 3).ok());
  ASSERT_TRUE(Export(exporter, 4).ok());
  for (const std::string& name : others) EXPECT_TRUE(fs::exists(directory_ / name)) << name;
  EXPECT_TRUE(fs::is_directory(directory_ / "server.77.99.pb.gz"));
  EXPECT_FALSE(fs::exists(directory_ / "server.77.3.pb.gz"));
  EXPECT_TRUE(fs::exists(directory_ / "server.77.4.pb.gz"));
}

TEST_F(FileExporterTest, TemporariesOfAKilledProcessGoAfterAnHour) {
  WriteFile(directory_ / ".server.60.0.pb.gz.123.tmp");
  WriteFile(directory_ / ".server.61.0.pb.gz.124.tmp");
  MakeOlder(".server.60.0.pb.gz.123.tmp", 2);
  FileExporter exporter(Options());
  ASSERT_TRUE(Export(exporter, 0).ok());
  EXPECT_THAT(List(directory_), ElementsAre(".server.61.0.pb.gz.124.tmp", "server.77.0.pb.gz"))
      << "another process may still be writing a young one";
}

TEST_F(FileExporterTest, ErrorsCarryThePathAndTheReason) {
  WriteFile(directory_ / "file");
  for (const fs::path& place : {directory_ / "file", directory_ / "file" / "deeper"}) {
    FileExporter exporter(ExporterOptions{.directory = place.string()});
    const auto result = Export(exporter, 0);
    ASSERT_FALSE(result.ok()) << *result;
    EXPECT_THAT(std::string(result.status().message()),
                AllOf(HasSubstr("cannot "),
                      HasSubstr("directory " + (directory_ / "file").generic_string())));
  }
}

TEST_F(FileExporterTest, WritesToTheDirectoriesOfItsPlatform) {
  ManualPlatform::Reset();
  PlatformFileExporter<ManualPlatform> exporter({.directory = "profiles"});
  EXPECT_THAT(exporter.Export({"bytes", ".pb.gz", "", Profile(), {}}).value_or("nowhere"),
              StartsWith("/profiles/program."));
  EXPECT_EQ(ManualPlatform::TheDirectories().Names("/profiles").size(), 1u);
}

TEST_F(FileExporterTest, SuffixMustBeOne) {
  FileExporter exporter(Options());
  Profile profile;
  for (const char* suffix : {"", "/../x"}) {
    EXPECT_EQ(exporter.Export(ExportRequest{"bytes", suffix, "", profile, {}}).status().code(),
              absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(List(directory_), IsEmpty());
}

}  // namespace
}  // namespace strobe::testing
