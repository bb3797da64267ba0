// How Linux marks the path of a mapped file that has been removed or replaced.
#pragma once

#include <string>
#include <string_view>

namespace strobe::internal {

inline std::string WithoutDeletedMark(std::string path) {
  constexpr std::string_view kMark = " (deleted)";
  if (path.size() > kMark.size() && std::string_view(path).ends_with(kMark))
    path.resize(path.size() - kMark.size());
  return path;
}

}  // namespace strobe::internal
