#include "../../../src/platform/linux/signals/thread_files.h"

#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "gtest/gtest.h"
#include "support/in_child.h"
#include "support/open_files.h"

namespace strobe::internal {
namespace {

using testing::HoldsInChild;
using testing::IsOpen;
using testing::OpenNull;
using testing::OpenZero;

int Keep(int open_number) {
  KnownFile file = KnownFile::Of(open_number);
  const int handle = KeepThreadFile(file);
  if (handle < 0) file.Close();
  return handle;
}
// More than are ever kept.
constexpr std::size_t kMaxFiles = 2000;

TEST(ThreadFilesTest, AFileIsKeptUntilItIsDropped) {
  const int first = Keep(OpenNull());
  const int second = Keep(OpenNull());
  ASSERT_GE(first, 0);
  ASSERT_GE(second, 0);
  const int file = KeptThreadFile(first);
  const int second_file = KeptThreadFile(second);
  EXPECT_NE(file, second_file);
  EXPECT_TRUE(IsOpen(file));
  EXPECT_EQ(ThreadFileNumber(first), file);
  DropThreadFile(first);
  EXPECT_FALSE(IsOpen(file));
  EXPECT_EQ(ThreadFileNumber(first), -1);
  EXPECT_EQ(ThreadFileNumber(-1), -1);
  EXPECT_EQ(KeptThreadFile(first), -1);
  EXPECT_EQ(KeptThreadFile(second), second_file);
  DropThreadFile(second);
  DropThreadFile(second);  // nothing is there
  EXPECT_FALSE(IsOpen(second_file));
}

TEST(ThreadFilesTest, WhatTheProgramHasPutThereIsLeftAlone) {
  const int kept = Keep(OpenNull());
  const int file = KeptThreadFile(kept);
  ASSERT_GE(file, 0);
  const int programs = OpenZero();
  ASSERT_EQ(dup2(programs, file), file);
  EXPECT_EQ(KeptThreadFile(kept), -1);
  DropThreadFile(kept);
  EXPECT_TRUE(IsOpen(file));
  close(file);
  close(programs);
}

// False where the system refuses files of a thread's own.
bool DropOnAThreadWithFilesOfItsOwn(int kept) {
  bool is_dropped = false;
  std::thread([&] {
    const int file = KeptThreadFile(kept);
    if (unshare(CLONE_FILES) != 0) return;
    DropThreadFile(kept);
    EXPECT_FALSE(IsOpen(file)) << "its copy";
    is_dropped = true;
  }).join();
  return is_dropped;
}

// unshare(CLONE_FILES) copies the table: the program's number stays open until a thread that has it
// closes one.
TEST(ThreadFilesTest, WhatAThreadWithFilesOfItsOwnHasLeftIsClosedByAnother) {
  const int kept = Keep(OpenNull());
  const int other = Keep(OpenNull());
  const int file = KeptThreadFile(kept);
  ASSERT_GE(file, 0);
  if (!DropOnAThreadWithFilesOfItsOwn(kept)) GTEST_SKIP() << "no thread has files of its own here";
  EXPECT_EQ(KeptThreadFile(kept), -1);
  EXPECT_TRUE(IsOpen(file));
  DropThreadFile(other);
  EXPECT_FALSE(IsOpen(file));
  DropThreadFile(kept);  // nothing is there
}

TEST(ThreadFilesTest, AForksChildHasThePlacesOfWhatAParentHasLeft) {
  EXPECT_TRUE(HoldsInChild([] {
    if (!DropOnAThreadWithFilesOfItsOwn(Keep(OpenNull()))) return true;
    return HoldsInChild([] {
      const int own = Keep(OpenNull());
      DropThreadFile(Keep(OpenNull()));
      return KeptThreadFile(own) >= 0;
    });
  }));
}

bool HasFirstThreadEnded() {
  std::ifstream file("/proc/self/stat");
  const std::string text(std::istreambuf_iterator<char>(file), {});
  return text.find(") Z ") != std::string::npos;
}

// The first thread's files are the program's as long as it lives.
TEST(ThreadFilesTest, PlacesAreFreeAgainWhereTheFirstThreadHasEnded) {
  EXPECT_TRUE(HoldsInChild([] {
    std::thread([] {
      while (!HasFirstThreadEnded()) std::this_thread::yield();
      bool has_places = true;
      for (std::size_t i = 0; has_places && i < kMaxFiles; ++i) {
        const int handle = Keep(OpenNull());
        has_places = handle >= 0;
        DropThreadFile(handle);
      }
      _exit(has_places ? 0 : 1);
    }).detach();
    syscall(SYS_exit, 0);
    return false;
  }));
}

TEST(ThreadFilesTest, AForksChildHasNoneAndClosesNothingOfTheProgram) {
  const int kept = Keep(OpenNull());
  const int file = KeptThreadFile(kept);
  ASSERT_GE(file, 0);
  EXPECT_TRUE(HoldsInChild([&] {
    // Before the child keeps files, the number may have become another file.
    const bool has_none = KeptThreadFile(kept) == -1;
    dup2(OpenZero(), file);
    DropThreadFile(kept);
    const int own = Keep(OpenNull());
    return has_none && IsOpen(file) && KeptThreadFile(own) >= 0 && KeptThreadFile(kept) == -1;
  }));
  EXPECT_EQ(KeptThreadFile(kept), file) << "the parent keeps it";
  DropThreadFile(kept);
}

TEST(ThreadFilesTest, AForksChildHasTheirPlaces) {
  std::vector<int> kept;
  while (kept.size() < kMaxFiles) {
    const int handle = Keep(OpenNull());
    if (handle < 0) break;
    kept.push_back(handle);
  }
  EXPECT_TRUE(HoldsInChild([&] {
    for (std::size_t i = 0; i < kept.size(); ++i) {
      if (Keep(OpenNull()) < 0) return false;
    }
    return true;
  })) << "closed by the child when it needs them";
  for (const int handle : kept) DropThreadFile(handle);
}

TEST(ThreadFilesTest, TheProgramsOwnFilesHaveRoom) {
  EXPECT_TRUE(HoldsInChild([] {
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 80;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
    std::vector<int> kept;
    while (kept.size() < kMaxFiles) {
      const int handle = Keep(OpenNull());
      if (handle < 0) break;
      kept.push_back(handle);
    }
    const bool is_bounded = kept.size() == 10;
    DropThreadFile(kept[0]);
    return is_bounded && Keep(OpenNull()) >= 0;
  }));
}

}  // namespace
}  // namespace strobe::internal
