// Get: a request to a server of this machine, without a library.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <string>

#include "gtest/gtest.h"

namespace strobe::testing {

// A connection to the port of the URL; -1 if there is none.
inline int Connect(const std::string& url) {
  const int descriptor = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port =
      htons(static_cast<std::uint16_t>(std::atoi(url.substr(url.rfind(':') + 1).c_str())));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(descriptor, reinterpret_cast<sockaddr*>(&address), sizeof(address)) == 0)
    return descriptor;
  close(descriptor);
  return -1;
}

// The whole answer to a GET.
inline std::string Get(const std::string& url, const std::string& target) {
  const int descriptor = Connect(url);
  if (descriptor < 0) return "no connection";
  const std::string request = "GET " + target + " HTTP/1.1\r\nHost: localhost\r\n\r\n";
  EXPECT_EQ(write(descriptor, request.data(), request.size()),
            static_cast<ssize_t>(request.size()));
  std::string answer;
  char buffer[65536];
  for (ssize_t got = 0; (got = read(descriptor, buffer, sizeof(buffer))) > 0;)
    answer.append(buffer, static_cast<std::size_t>(got));
  close(descriptor);
  return answer;
}

}  // namespace strobe::testing
