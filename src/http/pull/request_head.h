// RequestHead: what the head of an HTTP request says.
#pragma once

#include <cstddef>
#include <string_view>

#include "strobe/http/pull_handler.h"

namespace strobe::internal {

// The longest head and the longest body of a request.
inline constexpr std::size_t kMaxHeadBytes = std::size_t{8} << 10;
inline constexpr std::size_t kMaxBodyBytes = std::size_t{4} << 10;

// The bytes of the head that `bytes` begin with, to the end of its empty line. 0 if there is none.
std::size_t HeadBytes(std::string_view bytes);

struct RequestHead {
  // 0 if the request can be answered. Else the status to refuse it with: 400 for what is none, 405
  // for another method than GET, 413 for a body beyond the limit, 505 for another version than 1.0
  // and 1.1.
  int refusal = 0;
  PullRequest request{};

  // `head` is whole. A request for a URL ("GET http://host/path") is one to that host.
  static RequestHead Of(std::string_view head);
};

}  // namespace strobe::internal
