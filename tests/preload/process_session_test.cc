#include "../../src/preload/process_session.h"

#include <pthread.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <thread>

#include "gtest/gtest.h"
#include "platform/test_system.h"
#include "support/in_child.h"

namespace strobe::internal {
namespace {

// Only the first call of BeginProcess in a process has an effect, so each test is a child.
using testing::HoldsInChild;

std::size_t FilesIn(const std::filesystem::path& directory) {
  std::size_t count = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(directory)) ++count;
  return count;
}

TEST(ProcessSessionTest, WithoutASessionNothingHappens) {
  const testing::TemporaryDirectory directory;
  EXPECT_TRUE(HoldsInChild([&] {
    if (chdir(directory.path().c_str()) != 0) return false;
    errno = EINTR;
    BeginProcess();
    RegisterThisThread();
    RenameThisThread();
    EndBeforeExit();
    return errno == EINTR && FilesIn(".") == 0;
  }));
}

TEST(ProcessSessionTest, ASessionIsExportedBeforeTheProcessEnds) {
  const testing::TemporaryDirectory directory;
  EXPECT_TRUE(HoldsInChild([&] {
    testing::SetVariable("STROBE_RECORD_OUTPUT_DIRECTORY", directory.path().string());
    errno = EINTR;
    BeginProcess();
    if (errno != EINTR) return false;
    std::thread([] {
      RegisterThisThread();
      pthread_setname_np(pthread_self(), "strobe-own");
      RenameThisThread();  // it is not the program's any more
    }).join();
    BeginProcess();  // only the first call does anything
    EndBeforeExit();
    return FilesIn(directory.path()) == 1;
  }));
}

}  // namespace
}  // namespace strobe::internal
