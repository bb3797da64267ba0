#include "strobe/platform/linux/descriptor.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <thread>
#include <utility>

#include "gtest/gtest.h"
#include "strobe/platform/linux/own_files.h"
#include "support/in_child.h"
#include "support/open_files.h"

namespace strobe::internal {
namespace {

using testing::IsOpen;
using testing::OpenNull;
using testing::OpenSocket;
using testing::OpenZero;

TEST(DescriptorTest, ClosesWithItsOwner) {
  int number = -1;
  {
    const Descriptor descriptor(OpenNull());
    EXPECT_TRUE(descriptor.is_open());
    number = descriptor.get();
    EXPECT_TRUE(IsOpen(number));
  }
  EXPECT_FALSE(IsOpen(number));
}

TEST(DescriptorTest, MayBeNone) {
  const Descriptor none;
  EXPECT_FALSE(none.is_open());
  EXPECT_FALSE(Descriptor(-1).is_open()) << "as open() says that it failed";
}

TEST(DescriptorTest, LeavesTheSmallNumbersToTheProgram) {
  rlimit limit{};
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &limit), 0);
  const int number = open("/dev/zero", O_RDONLY);
  const Descriptor descriptor(number);
  EXPECT_GE(descriptor.get(),
            static_cast<int>(std::min<rlim_t>(kFirstKeptNumber, limit.rlim_cur / 2)));
  EXPECT_EQ(fcntl(descriptor.get(), F_GETFD), FD_CLOEXEC);
  const int next = OpenNull();
  EXPECT_EQ(next, number) << "the number that it had is free";
  close(next);
}

TEST(DescriptorTest, KeepsItsNumberWhereNoHigherOneIsFree) {
  EXPECT_TRUE(testing::HoldsInChild([] {
    constexpr rlim_t kLimit = 24;
    const rlimit limit{kLimit, kLimit};
    if (setrlimit(RLIMIT_NOFILE, &limit) != 0) return false;
    for (int number = kLimit / 2; number < static_cast<int>(kLimit); ++number)
      dup2(STDERR_FILENO, number);
    const int number = OpenNull();
    return Descriptor(number).get() == number;
  }));
}

TEST(DescriptorTest, HasOneOwner) {
  Descriptor first(OpenNull());
  const int number = first.get();
  Descriptor second(std::move(first));
  EXPECT_FALSE(first.is_open());  // NOLINT(bugprone-use-after-move)
  first.Close();
  EXPECT_TRUE(IsOpen(number));
  Descriptor third(OpenNull());
  third = std::move(second);
  EXPECT_EQ(third.get(), number);
  EXPECT_TRUE(IsOpen(number));
}

TEST(DescriptorTest, ANumberThatTheProgramHasClosedIsNone) {
  Descriptor descriptor(OpenNull());
  close(descriptor.get());
  EXPECT_EQ(descriptor.get(), -1);
  EXPECT_FALSE(descriptor.is_open());
}

// The program's own file, whatever kind it is and the descriptor's was.
void IsLeftAlone(int ours, int programs) {
  Descriptor descriptor(ours);
  ASSERT_TRUE(descriptor.is_open());
  const int number = descriptor.get();
  ASSERT_EQ(dup2(programs, number), number);
  close(programs);
  EXPECT_EQ(descriptor.get(), -1);
  descriptor.Close();
  EXPECT_TRUE(IsOpen(number)) << "it is the program's";
  close(number);
}
int OpenMemory() { return static_cast<int>(syscall(SYS_memfd_create, "test", 0)); }
int OpenEvent() {
  perf_event_attr attributes{};
  attributes.size = sizeof(attributes);
  attributes.type = PERF_TYPE_SOFTWARE;
  attributes.config = PERF_COUNT_SW_DUMMY;
  attributes.exclude_kernel = 1;
  attributes.disabled = 1;
  return static_cast<int>(syscall(SYS_perf_event_open, &attributes, 0, -1, -1, 0));
}

TEST(DescriptorTest, ANumberThatIsTheProgramsIsLeftAlone) {
  IsLeftAlone(OpenNull(), OpenZero());
  IsLeftAlone(OpenSocket(), OpenSocket());
  IsLeftAlone(OpenMemory(), OpenMemory());
  IsLeftAlone(open("/proc/self/stat", O_RDONLY), open("/proc/self/status", O_RDONLY));
  IsLeftAlone(OpenMemory(), OpenSocket());
}

TEST(DescriptorTest, TwoEventsAreTwoFiles) {
  const int first = OpenEvent();
  if (first < 0) GTEST_SKIP() << "perf_event_open is refused here";
  IsLeftAlone(first, OpenEvent());
}

// A shell's `exec 3>file` may come between the opening of an event and its move.
TEST(KnownFile, OfAnEventIsNoneOnceTheProgramHasItsNumber) {
  const int programs = OpenNull();
  EXPECT_EQ(KnownFile::OfEvent(programs).number, -1);
  EXPECT_TRUE(IsOpen(programs)) << "it is the program's";
  close(programs);
  EXPECT_EQ(KnownFile::OfEvent(-1).number, -1);
  const int event = OpenEvent();
  if (event < 0) GTEST_SKIP() << "perf_event_open is refused here";
  KnownFile file = KnownFile::OfEvent(event);
  EXPECT_GE(file.Number(), 0);
  EXPECT_EQ(file.Close(), 0);
}

TEST(KnownFile, IsReopenedWhereAThreadWithFilesOfItsOwnDoesNotHaveIt) {
  const KnownFile file = KnownFile::Of(OpenMemory());
  const auto is_reopened = [&] {
    const Descriptor again(file.Reopen());
    return FileIdentity::Of(again.get()) == file.identity;
  };
  EXPECT_TRUE(is_reopened());
  std::thread([&] {
    if (!TakeOwnFiles()) return;
    EXPECT_EQ(file.Number(), -1);
    EXPECT_TRUE(is_reopened());
  }).join();
  close(file.number);
  EXPECT_EQ(file.Reopen(), -1);
}

TEST(DescriptorTest, IsElsewhereForAThreadWithFilesOfItsOwn) {
  const Descriptor descriptor(OpenNull());
  EXPECT_FALSE(descriptor.IsElsewhere());
  std::thread([&] {
    if (unshare(CLONE_FILES) != 0) return;
    EXPECT_FALSE(descriptor.IsElsewhere()) << "it has a copy";
    close(descriptor.get());
    EXPECT_TRUE(descriptor.IsElsewhere());
  }).join();
  close(descriptor.get());
  EXPECT_FALSE(descriptor.IsElsewhere()) << "the program has closed it";
  EXPECT_FALSE(Descriptor().IsElsewhere());
}

TEST(DescriptorTest, AForksChildClosesItsOwnNumberAlone) {
  Descriptor descriptor(OpenNull());
  EXPECT_TRUE(testing::HoldsInChild([&] {
    const int number = descriptor.get();
    descriptor.Close();
    return number >= 0 && !IsOpen(number);
  }));
  EXPECT_TRUE(descriptor.is_open());
}

TEST(KnownFileTest, SaysWhetherItWasStillThere) {
  KnownFile file = KnownFile::Of(OpenNull());
  EXPECT_EQ(file.Close(), 0);
  EXPECT_EQ(file.Close(), EBADF);
  file = KnownFile::Of(OpenNull());
  close(file.number);
  EXPECT_EQ(file.Close(), EBADF);
}

}  // namespace
}  // namespace strobe::internal
