#include "strobe/platform/linux/server_socket.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <utility>
#include <vector>

#include "gtest/gtest.h"
#include "support/in_child.h"
#include "support/open_files.h"

namespace strobe::internal {
namespace {

using testing::IsOpen;

TEST(ServerSocket, AForksChildHasNone) {
  const ServerSocket socket(testing::OpenSocket());
  const int other = testing::OpenSocket();
  const int number = socket.get();
  ASSERT_GE(number, 0);
  EXPECT_TRUE(testing::HoldsInChild([&] { return !IsOpen(number) && IsOpen(other); }));
  EXPECT_TRUE(IsOpen(number));
  close(other);
}

TEST(ServerSocket, AForksChildClosesNothingOfTheProgram) {
  const ServerSocket socket(testing::OpenSocket());
  const int number = socket.get();
  ASSERT_EQ(dup2(testing::OpenNull(), number), number) << "the program has taken the number";
  EXPECT_EQ(socket.get(), -1);
  EXPECT_TRUE(testing::HoldsInChild([&] { return IsOpen(number); }));
  close(number);
}

TEST(ServerSocket, ItsEndClosesItAndFreesItsPlace) {
  for (std::size_t i = 0; i < 2 * kMaxServerSockets; ++i) {
    ServerSocket first(testing::OpenSocket());
    const int number = first.get();
    const ServerSocket moved = std::move(first);
    EXPECT_EQ(moved.get(), number);
    if (i % kMaxServerSockets != 0) continue;
    EXPECT_TRUE(testing::HoldsInChild([&] { return !IsOpen(number); }));
  }
  const ServerSocket none;
  EXPECT_EQ(none.get(), -1);
}

TEST(ServerSocket, TheOtherEndSeesTheEndThoughSomebodyHasACopy) {
  std::array<int, 2> ends{};
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends.data()), 0);
  const int copy = dup(ends[0]);
  { const ServerSocket socket(ends[0]); }
  char byte = 0;
  EXPECT_EQ(read(ends[1], &byte, 1), 0);
  close(copy);
  close(ends[1]);
}

// A child may have servers of its own, in the places of the parent's.
TEST(ServerSocket, AForksChildUsesThePlacesAgain) {
  ServerSocket socket(testing::OpenSocket());
  EXPECT_TRUE(testing::HoldsInChild([&] {
    const ServerSocket own(testing::OpenSocket());
    socket = ServerSocket();
    const int number = own.get();
    return IsOpen(number) && testing::HoldsInChild([&] { return !IsOpen(number); });
  }));
}

}  // namespace
}  // namespace strobe::internal
