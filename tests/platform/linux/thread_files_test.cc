#include "../../../src/platform/linux/signals/thread_files.h"

#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

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

void LeaveOnAThreadWithFilesOfItsOwn(int kept) {
  std::thread([kept] {
    const int file = KeptThreadFile(kept);
    if (unshare(CLONE_FILES) != 0) return;
    LeaveThreadFile(kept);
    EXPECT_FALSE(IsOpen(file)) << "its copy";
  }).join();
}

// unshare(CLONE_FILES) copies the table: the program's number stays open until a thread that has it
// closes it.
TEST(ThreadFilesTest, WhatAThreadWithFilesOfItsOwnHasLeftIsClosedByAnother) {
  const int kept = Keep(OpenNull());
  const int file = KeptThreadFile(kept);
  ASSERT_GE(file, 0);
  LeaveOnAThreadWithFilesOfItsOwn(kept);
  EXPECT_EQ(KeptThreadFile(kept), -1);
  CloseLeftThreadFiles();
  EXPECT_FALSE(IsOpen(file));
  CloseLeftThreadFiles();  // nothing is left
  DropThreadFile(kept);
}

TEST(ThreadFilesTest, AForksChildHasThePlacesOfWhatAParentHasLeft) {
  EXPECT_TRUE(HoldsInChild([] {
    const int kept = Keep(OpenNull());
    LeaveOnAThreadWithFilesOfItsOwn(kept);
    return HoldsInChild([] {
      CloseLeftThreadFiles();
      const int own = Keep(OpenNull());
      CloseLeftThreadFiles();
      return KeptThreadFile(own) >= 0;
    });
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
