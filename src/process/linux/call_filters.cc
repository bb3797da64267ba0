#include "call_filters.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <cstddef>
#include <string_view>

namespace strobe::internal {
namespace {

// The number behind `key`; -1 if the text has no such line.
int NumberIn(std::string_view text, std::string_view key) {
  const std::size_t place = text.find(key);
  if (place == std::string_view::npos) return -1;
  text.remove_prefix(place + key.size());
  int number = -1;
  std::from_chars(text.data(), text.data() + text.size(), number);
  return number;
}

}  // namespace

int CountCallFilters() noexcept {
  constexpr int kFilterMode = 2;
  constexpr std::size_t kMaxBytes = 4096;  // the status has half of that, or less
  const int file = open("/proc/thread-self/status", O_RDONLY | O_CLOEXEC);
  if (file < 0) return -1;
  std::array<char, kMaxBytes> bytes;
  const ssize_t got = read(file, bytes.data(), bytes.size());
  close(file);
  const std::string_view text(bytes.data(), got < 0 ? 0 : static_cast<std::size_t>(got));
  const int count = NumberIn(text, "\nSeccomp_filters:\t");
  if (count >= 0) return count;
  const int mode = NumberIn(text, "\nSeccomp:\t");
  return mode < 0 ? -1 : static_cast<int>(mode == kFilterMode);
}

}  // namespace strobe::internal
