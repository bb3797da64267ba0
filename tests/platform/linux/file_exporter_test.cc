// What only Linux' file systems, limits and mounts can do to the file exporter.
#include <fcntl.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/file_exporter_fixture.h"
#include "support/in_child.h"

namespace strobe::testing {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using LinuxFileExporterTest = FileExporterTest;

TEST_F(LinuxFileExporterTest, ModeIsForTheUserAloneWhateverTheUmaskSays) {
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

TEST_F(LinuxFileExporterTest, SymbolicLinkInTheWayIsNotFollowed) {
  const fs::path target = directory_ / "target";
  WriteFile(target, "precious");
  fs::create_symlink(target, directory_ / "server.77.0.pb.gz");
  FileExporter exporter(Options());
  const auto path = Export(exporter, 0);
  ASSERT_TRUE(path.ok()) << path.status().ToString();
  EXPECT_EQ(ReadFile(target), "precious");
  EXPECT_EQ(ReadFile(*path), "bytes");
}

TEST_F(LinuxFileExporterTest, ErrorsCarryTheSystemsWords) {
  WriteFile(directory_ / "file");
  FileExporter exporter(ExporterOptions{.directory = (directory_ / "file" / "deeper").string()});
  EXPECT_THAT(std::string(Export(exporter, 0).status().message()), HasSubstr("Not a directory"));
  FileExporter nowhere(ExporterOptions{.directory = "/proc/strobe/profiles"});
  EXPECT_THAT(std::string(Export(nowhere, 0).status().message()),
              AllOf(HasSubstr("cannot "), HasSubstr("directory /proc/strobe")));
}

// Runs `body` in a child process, whose limits, user and mounts are its own. Its exit code: 0 for
// success, 77 where it could not be set up.
template <class Body>
int ExitCodeInChild(const Body& body) {
  const int status = testing::RunInChild([&] { _exit(body()); });
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

TEST_F(LinuxFileExporterTest, FileThatMayNotGrowLeavesNothingBehind) {
  const int code = ExitCodeInChild([this] {
    const rlimit limit{4096, 4096};
    signal(SIGXFSZ, SIG_IGN);
    if (setrlimit(RLIMIT_FSIZE, &limit) != 0) return 77;
    FileExporter exporter(Options());
    const auto result = Export(exporter, 0, std::string(100'000, 'x'));
    if (result.ok() || result.status().message().find("cannot write") == absl::string_view::npos)
      return 1;
    if (!List(directory_).empty()) return 2;
    return Export(exporter, 0, "short").ok() ? 0 : 3;
  });
  if (code == 77) GTEST_SKIP() << "setrlimit(RLIMIT_FSIZE) was refused";
  EXPECT_EQ(code, 0);
  EXPECT_THAT(List(directory_), ElementsAre("server.77.0.pb.gz"));
}

TEST_F(LinuxFileExporterTest, FullDiskLeavesNothingBehind) {
  const int code = ExitCodeInChild([this] {
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
    if (result.ok() || result.status().message().find("No space left") == absl::string_view::npos)
      return 1;
    if (!List(directory_).empty()) return 2;
    return Export(exporter, 0, "short").ok() ? 0 : 3;
  });
  if (code == 77) GTEST_SKIP() << "no private mount namespace here";
  EXPECT_EQ(code, 0);
}

// The first window of a user makes the folder for all who share the directory.
TEST_F(LinuxFileExporterTest, UsersWhoShareADirectoryShareTheFolderOfItsWindows) {
  ASSERT_EQ(chmod(directory_.c_str(), 01777), 0);
  const auto export_window = [this] {
    FileExporter exporter(Options());
    Profile profile;
    profile.program = "server";
    profile.window = "the last 1.0 s";
    return exporter
        .Export(ExportRequest{"bytes", ".pb.gz", "application/octet-stream", profile, {}})
        .status();
  };
  ASSERT_EQ(export_window(), absl::OkStatus());
  struct stat folder {};
  ASSERT_EQ(stat((directory_ / "last").c_str(), &folder), 0);
  EXPECT_EQ(folder.st_mode & 07777, 01777u);
  const int code = ExitCodeInChild([&] {
    constexpr uid_t kNobody = 65534;
    if (setresuid(kNobody, kNobody, kNobody) != 0) return 77;
    return export_window().ok() ? 0 : 1;
  });
  if (code == 77) GTEST_SKIP() << "this user cannot become another one";
  EXPECT_EQ(code, 0);
}

TEST_F(LinuxFileExporterTest, DirectoryWithoutPermission) {
  fs::permissions(directory_, fs::perms::owner_read | fs::perms::owner_exec |
                                  fs::perms::others_read | fs::perms::others_exec);
  const int code = ExitCodeInChild([this] {
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

}  // namespace
}  // namespace strobe::testing
