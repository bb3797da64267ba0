#include "strobe/export/file_exporter.h"

#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdlib>
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
#include "strobe/testing/exporter_conformance.h"
#include "strobe/testing/profiles.h"

namespace strobe::testing {

namespace fs = std::filesystem;

// A directory of one test's own.
class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    std::string pattern = (fs::temp_directory_path() / "strobe_test_XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) abort();
    path_ = pattern;
  }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

std::vector<std::string> List(const fs::path& directory) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

std::string ReadFile(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

void WriteFile(const fs::path& path, std::string_view text = "x") { std::ofstream(path, std::ios::binary) << text; }

struct FileHarness {
  using Exporter = FileExporter;
  FileHarness() : directory(temporary.path() / "profiles") {}
  ExporterOptions options() const { return {.directory = directory.string()}; }
  std::vector<std::string> Delivered() const { return fs::is_directory(directory) ? List(directory) : std::vector<std::string>(); }
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

class FileExporterTest : public ::testing::Test {
 protected:
  [[nodiscard]] ExporterOptions Options(std::int64_t max_files = 100, std::int64_t max_bytes = 1 << 20) const {
    return {.directory = directory_.string(), .max_files = max_files, .max_bytes = max_bytes};
  }

  static absl::StatusOr<std::string> Export(FileExporter& exporter, std::uint64_t sequence, std::string_view bytes = "bytes",
                                            std::string program = "server", std::uint64_t process_id = 77) {
    Profile profile;
    profile.program = std::move(program);
    profile.process_id = process_id;
    profile.sequence = sequence;
    return exporter.Export(ExportRequest{bytes, ".pb.gz", "application/octet-stream", profile});
  }

  // Sets when a file was last modified, in hours before now.
  void MakeOlder(const std::string& name, int hours) const {
    fs::last_write_time(directory_ / name, fs::file_time_type::clock::now() - std::chrono::hours(hours));
  }

  TemporaryDirectory temporary_;
  fs::path directory_ = temporary_.path();
};

TEST_F(FileExporterTest, NameIsProgramProcessSequenceAndSuffix) {
  FileExporter exporter(Options());
  const auto path = Export(exporter, 12);
  ASSERT_TRUE(path.ok()) << path.status().ToString();
  EXPECT_EQ(*path, (directory_ / "server.77.12.pb.gz").string());
  EXPECT_EQ(ReadFile(*path), "bytes");
  EXPECT_THAT(List(directory_), ElementsAre("server.77.12.pb.gz")) << "no temporary is left";
}

TEST_F(FileExporterTest, ModeIsForTheUserAloneWhateverTheUmaskSays) {
  FileExporter exporter(ExporterOptions{.directory = (directory_ / "a" / "b").string()});
  for (const mode_t mask : {mode_t{0}, mode_t{0277}}) {
    const mode_t before = umask(mask);
    const auto path = Export(exporter, mask);
    umask(before);
    ASSERT_TRUE(path.ok()) << path.status().ToString();
    EXPECT_EQ(fs::status(*path).permissions(), fs::perms::owner_read | fs::perms::owner_write);
  }
  EXPECT_EQ(fs::status(directory_ / "a").permissions(), fs::perms::owner_all);
  EXPECT_EQ(fs::status(directory_ / "a" / "b").permissions(), fs::perms::owner_all);
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

TEST_F(FileExporterTest, ProgramNameCannotLeaveTheDirectory) {
  FileExporter exporter(Options());
  for (const char* program : {"../../etc/passwd", "..", "", "a b;$(c)\n", "\xFF"}) {
    const auto path = Export(exporter, 0, "bytes", program);
    ASSERT_TRUE(path.ok()) << path.status().ToString();
    EXPECT_EQ(fs::path(*path).parent_path(), directory_) << program;
  }
  ASSERT_TRUE(Export(exporter, 0, "bytes", std::string(10'000, 'n')).ok());
  EXPECT_THAT(List(directory_), AllOf(Contains("program.77.0.pb.gz"), Contains("a_b___c__.77.0.pb.gz"), Contains("_..77.0.pb.gz"),
                                      Contains("_._.._etc_passwd.77.0.pb.gz"), Contains(std::string(128, 'n') + ".77.0.pb.gz")));
}

TEST_F(FileExporterTest, NothingIsOverwritten) {
  FileExporter first(Options()), second(Options());
  for (std::uint64_t i = 0; i < 3; ++i) ASSERT_TRUE(Export(first, i, "first run").ok());
  // The same process id again, from sequence 0, as a container that was started again.
  const auto path = Export(second, 0, "second run");
  ASSERT_TRUE(path.ok()) << path.status().ToString();
  EXPECT_EQ(*path, (directory_ / "server.77.3.pb.gz").string());
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

TEST_F(FileExporterTest, SymbolicLinkInTheWayIsNotFollowed) {
  const fs::path target = directory_ / "target";
  WriteFile(target, "precious");
  fs::create_symlink(target, directory_ / "server.77.0.pb.gz");
  FileExporter exporter(Options());
  const auto path = Export(exporter, 0);
  ASSERT_TRUE(path.ok()) << path.status().ToString();
  EXPECT_EQ(ReadFile(target), "precious");
  EXPECT_EQ(ReadFile(*path), "bytes");
}

TEST_F(FileExporterTest, OldestBeyondTheCountAreRemoved) {
  FileExporter exporter(Options(3));
  for (std::uint64_t i = 0; i < 6; ++i) ASSERT_TRUE(Export(exporter, i).ok());
  EXPECT_THAT(List(directory_), ElementsAre("server.77.3.pb.gz", "server.77.4.pb.gz", "server.77.5.pb.gz"));
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
  for (std::uint64_t i = 0; i < 5; ++i) ASSERT_TRUE(Export(exporter, i, std::string(400, 'x')).ok());
  EXPECT_THAT(List(directory_), ElementsAre("server.77.3.pb.gz", "server.77.4.pb.gz"));
  ASSERT_TRUE(Export(exporter, 5, std::string(5000, 'x')).ok());
  EXPECT_THAT(List(directory_), ElementsAre("server.77.5.pb.gz"));
}

TEST_F(FileExporterTest, FilesOfOthersStay) {
  const std::vector<std::string> others = {"server2.77.0.pb.gz", "server.77.pb.gz",      "server.77.0.pb.gz.bak",    "server.x.0.pb.gz",
                                           "server.77.-1.pb.gz", "server.77.0.pb",       "serve.77.0.pb.gz",         "my.server.77.0.pb.gz",
                                           "notes.txt",          ".server.77.0.pb.gz.x", ".server2.7.0.pb.gz.1.tmp", "server.7.7.7.pb.gz"};
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
  const std::string inside = (directory_ / "file" / "deeper").string();
  for (const std::string& place : {(directory_ / "file").string(), inside, std::string("/proc/strobe/profiles")}) {
    FileExporter exporter(ExporterOptions{.directory = place});
    const auto result = Export(exporter, 0);
    ASSERT_FALSE(result.ok()) << *result;
    EXPECT_THAT(std::string(result.status().message()), AllOf(HasSubstr("cannot "), HasSubstr("directory /"))) << place;
  }
  FileExporter exporter(ExporterOptions{.directory = inside});
  EXPECT_THAT(std::string(Export(exporter, 0).status().message()), HasSubstr("Not a directory"));
}

// Runs `body` in a child process, whose limits, user and mounts are its own. Its exit code: 0 for success, 77 where it could not be set up.
template <class Body>
int RunInChild(Body body) {
  const pid_t child = fork();
  if (child == 0) _exit(body());
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(FileExporterTest, FileThatMayNotGrowLeavesNothingBehind) {
  const int code = RunInChild([this] {
    const rlimit limit{4096, 4096};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 77;
    FileExporter exporter(Options());
    const auto result = Export(exporter, 0, std::string(100'000, 'x'));
    if (result.ok() || result.status().message().find("cannot write") == absl::string_view::npos) return 1;
    if (!List(directory_).empty()) return 2;
    return Export(exporter, 0, "short").ok() ? 0 : 3;
  });
  if (code == 77) GTEST_SKIP() << "setrlimit(RLIMIT_FSIZE) was refused";
  EXPECT_EQ(code, 0);
  EXPECT_THAT(List(directory_), ElementsAre("server.77.0.pb.gz"));
}

TEST_F(FileExporterTest, FullDiskLeavesNothingBehind) {
  const int code = RunInChild([this] {
    const uid_t user = geteuid();
    const gid_t group = getegid();
    if (unshare(CLONE_NEWNS) != 0) {
      if (unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return 77;
      WriteFile("/proc/self/setgroups", "deny");
      WriteFile("/proc/self/uid_map", absl::StrCat("0 ", user, " 1"));
      WriteFile("/proc/self/gid_map", absl::StrCat("0 ", group, " 1"));
    }
    if (mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0) return 77;
    if (mount("strobe", directory_.c_str(), "tmpfs", 0, "size=64k") != 0) return 77;
    FileExporter exporter(Options());
    const auto result = Export(exporter, 0, std::string(1'000'000, 'x'));
    if (result.ok() || result.status().message().find("No space left") == absl::string_view::npos) return 1;
    if (!List(directory_).empty()) return 2;
    return Export(exporter, 0, "short").ok() ? 0 : 3;
  });
  if (code == 77) GTEST_SKIP() << "no private mount namespace here";
  EXPECT_EQ(code, 0);
}

TEST_F(FileExporterTest, DirectoryWithoutPermission) {
  fs::permissions(directory_, fs::perms::owner_read | fs::perms::owner_exec | fs::perms::others_read | fs::perms::others_exec);
  const int code = RunInChild([this] {
    constexpr uid_t kNobody = 65534;
    if (geteuid() == 0 && setresuid(kNobody, kNobody, kNobody) != 0) return 77;
    FileExporter exporter(Options());
    const auto result = Export(exporter, 0);
    return result.status().code() == absl::StatusCode::kPermissionDenied ? 0 : 1;
  });
  fs::permissions(directory_, fs::perms::owner_all);
  if (code == 77) GTEST_SKIP() << "root here cannot become another user";
  EXPECT_EQ(code, 0);
  EXPECT_THAT(List(directory_), IsEmpty());
}

TEST_F(FileExporterTest, SuffixMustBeOne) {
  FileExporter exporter(Options());
  Profile profile;
  for (const char* suffix : {"", "/../x"}) {
    EXPECT_EQ(exporter.Export(ExportRequest{"bytes", suffix, "", profile}).status().code(), absl::StatusCode::kInvalidArgument);
  }
  EXPECT_THAT(List(directory_), IsEmpty());
}

}  // namespace
}  // namespace strobe::testing
