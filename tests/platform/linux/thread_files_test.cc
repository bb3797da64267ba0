#include "../../../src/platform/linux/thread_files.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <vector>

#include "gtest/gtest.h"
#include "support/in_child.h"

namespace strobe::internal {
namespace {

using testing::HoldsInChild;

int OpenNull() { return open("/dev/null", O_RDONLY | O_CLOEXEC); }
bool IsOpenFile(int file) { return fcntl(file, F_GETFD) >= 0; }

TEST(ThreadFilesTest, AFileIsKeptUntilItIsDropped) {
  const int first = OpenNull();
  const int second = OpenNull();
  const int first_place = KeepThreadFile(first);
  const int second_place = KeepThreadFile(second);
  ASSERT_GE(first_place, 0);
  ASSERT_GE(second_place, 0);
  EXPECT_NE(first_place, second_place);
  EXPECT_EQ(KeptThreadFile(first_place), first);
  DropThreadFile(first_place);
  EXPECT_FALSE(IsOpenFile(first));
  EXPECT_EQ(KeptThreadFile(first_place), -1);
  EXPECT_EQ(KeptThreadFile(second_place), second);
  DropThreadFile(second_place);
  DropThreadFile(second_place);  // nothing is there
  EXPECT_FALSE(IsOpenFile(second));
}

TEST(ThreadFilesTest, AForksChildDropsThemAll) {
  const int file = OpenNull();
  const int place = KeepThreadFile(file);
  ASSERT_GE(place, 0);
  EXPECT_TRUE(HoldsInChild([&] {
    DropAllThreadFiles();
    return KeptThreadFile(place) == -1 && !IsOpenFile(file);
  }));
  EXPECT_EQ(KeptThreadFile(place), file) << "the parent keeps it";
  DropThreadFile(place);
}

TEST(ThreadFilesTest, TheProgramsOwnFilesHaveRoom) {
  EXPECT_TRUE(HoldsInChild([] {
    DropAllThreadFiles();
    rlimit limit{};
    getrlimit(RLIMIT_NOFILE, &limit);
    limit.rlim_cur = 80;
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
    std::vector<int> places;
    while (places.size() < 80) {
      const int file = OpenNull();
      const int place = file < 0 ? -1 : KeepThreadFile(file);
      if (place < 0) break;
      places.push_back(place);
    }
    const bool is_bounded = places.size() == 10;
    DropThreadFile(places[0]);
    return is_bounded && KeepThreadFile(OpenNull()) >= 0;
  }));
}

}  // namespace
}  // namespace strobe::internal
