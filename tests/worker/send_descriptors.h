// Sends more descriptors than a WorkerSocket would.
#pragma once

#include <sys/socket.h>
#include <sys/uio.h>

#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace strobe::testing {

// One packet with the descriptors, without a wait. What sendmsg returns.
inline ssize_t SendDescriptors(int socket, std::string_view packet,
                               std::span<const int> descriptors) {
  iovec part{.iov_base = const_cast<char*>(packet.data()), .iov_len = packet.size()};
  // Words, so that the head of the control data is aligned.
  std::vector<std::size_t> control(CMSG_SPACE(descriptors.size_bytes()) / sizeof(std::size_t));
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size() * sizeof(std::size_t);
  cmsghdr* const rights = CMSG_FIRSTHDR(&header);
  rights->cmsg_level = SOL_SOCKET;
  rights->cmsg_type = SCM_RIGHTS;
  rights->cmsg_len = CMSG_LEN(descriptors.size_bytes());
  std::memcpy(CMSG_DATA(rights), descriptors.data(), descriptors.size_bytes());
  return sendmsg(socket, &header, MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace strobe::testing
