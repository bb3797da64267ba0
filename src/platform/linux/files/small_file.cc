#include "small_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <cstddef>

#include "strobe/platform/linux/descriptor.h"

namespace strobe::internal {

std::string ReadStart(const std::string& path) {
  constexpr std::size_t kMaxBytes = 4096;
  std::string text(kMaxBytes, '\0');
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  const ssize_t got = read(file.get(), text.data(), text.size());
  text.resize(got < 0 ? 0 : static_cast<std::size_t>(got));
  return text;
}

}  // namespace strobe::internal
