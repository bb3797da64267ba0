// Programs that have something to lose by being profiled: one that closes the plug-in which
// profiled itself, and one with more rights than the user that started it.
#include <signal.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string>

#include "absl/status/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "platform/test_system.h"
#include "strobe/own_parts.h"
#include "strobe/platform/native.h"

namespace strobe::testing {
namespace {

TEST(Hosts, MayCloseAPlugInThatHasProfiledItself) {
  const char* const plugin = std::getenv("STROBE_TEST_CLOSED_PLUGIN");
  ASSERT_NE(plugin, nullptr);
  const TemporaryDirectory directory;
  {
    const Library library(plugin);
    ASSERT_TRUE(library) << Library::Error();
    // NOLINTNEXTLINE(performance-no-int-to-ptr)
    const auto profile = reinterpret_cast<bool (*)(const char*)>(library.Symbol("ProfilePlugin"));
    ASSERT_NE(profile, nullptr);
    EXPECT_TRUE(profile(directory.path().c_str()));
  }
  // Handlers stay installed, and the plug-in's own is one.
  ASSERT_EQ(raise(SIGURG), 0);
}

constexpr int kUnprivileged = 65534;
// The exit statuses of the copy that runs below.
constexpr int kIsFine = 78;
constexpr int kIsNot = 79;

// In a program with more rights than the user that started it.
void ExpectToDoNothingThatTheUserAsksFor() {
  Profiler profiler;
  EXPECT_EQ(*profiler.options().exporter.directory, "strobe-profiles");
  EXPECT_EQ(*profiler.options().sampling.wall_frequency_hz, 0);
  EXPECT_EQ(NativePlatform::ProgramName(), "privileged");
  const Registration registration = profiler.RegisterThread("main");
  // Nor does it write to where the user happens to stand.
  const absl::Status started = profiler.Start();
  EXPECT_TRUE(absl::IsFailedPrecondition(started)) << started;
  EXPECT_THAT(std::string(started.message()), ::testing::HasSubstr("STROBE_OUTPUT_DIRECTORY"));
}

TEST(Hosts, WithMoreRightsThanTheirUserDoNothingThatTheUserAsksFor) {
  if (getauxval(AT_SECURE) != 0) {
    ExpectToDoNothingThatTheUserAsksFor();
    _exit(HasFailure() ? kIsNot : kIsFine);
  }
  if (geteuid() != 0) GTEST_SKIP() << "only root can give a program another user's rights";
  const TemporaryDirectory directory;
  const std::filesystem::path program = directory.path() / "privileged";
  std::filesystem::copy_file(ProgramPath(), program);
  using std::filesystem::perms;
  const perms all_may_run = perms::owner_all | perms::group_read | perms::group_exec |
                            perms::others_read | perms::others_exec;
  std::filesystem::permissions(directory.path(), perms::all);
  std::filesystem::permissions(program, all_may_run | perms::set_uid);
  const pid_t child = fork();
  if (child == 0) {
    setenv("STROBE_OUTPUT_DIRECTORY", (directory.path() / "elsewhere").c_str(), 1);
    setenv("STROBE_WALL_FREQUENCY_HZ", "10", 1);
    if (chdir(directory.path().c_str()) != 0 || setgid(kUnprivileged) != 0 ||
        setuid(kUnprivileged) != 0)
      _exit(0);
    execl(program.c_str(), "another-name", "--gtest_filter=*WithMoreRights*", nullptr);
    _exit(0);
  }
  ASSERT_GT(child, 0);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << status;
  if (WEXITSTATUS(status) == 0)
    GTEST_SKIP() << "the system gives no program another user's rights here";
  EXPECT_EQ(WEXITSTATUS(status), kIsFine);
  for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
    EXPECT_EQ(entry.path(), program);
}

}  // namespace
}  // namespace strobe::testing
