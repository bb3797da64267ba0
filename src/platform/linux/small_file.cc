#include "small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>

namespace strobe::internal {

std::string ReadStart(const std::string& path) {
  constexpr std::size_t kMaxBytes = 4096;
  std::string text(kMaxBytes, '\0');
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const ssize_t got = file < 0 ? -1 : read(file, text.data(), text.size());
  if (file >= 0) close(file);
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return text;
}

}  // namespace strobe::internal
