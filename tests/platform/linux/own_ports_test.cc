#include "strobe/platform/linux/own_ports.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "gtest/gtest.h"
#include "support/in_child.h"
#include "support/open_files.h"

namespace strobe::internal {
namespace {

TEST(OwnPorts, AForksChildHasNoSocketOfThem) {
  const int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof(address);
  ASSERT_EQ(bind(server, reinterpret_cast<sockaddr*>(&address), size), 0);
  ASSERT_EQ(getsockname(server, reinterpret_cast<sockaddr*>(&address), &size), 0);
  const int other = testing::OpenSocket();
  CloseSocketsInChild(ntohs(address.sin_port));
  EXPECT_TRUE(
      testing::HoldsInChild([&] { return !testing::IsOpen(server) && testing::IsOpen(other); }));
  EXPECT_TRUE(testing::IsOpen(server));
  ForgetSocketsInChild(ntohs(address.sin_port));
  EXPECT_TRUE(testing::HoldsInChild([&] { return testing::IsOpen(server); }));
  close(server);
  close(other);
}

}  // namespace
}  // namespace strobe::internal
