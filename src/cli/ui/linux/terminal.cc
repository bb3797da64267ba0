#include "ui/terminal.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <termios.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "absl/strings/str_cat.h"
#include "strobe/platform/linux/descriptor.h"

namespace strobe::internal {
namespace {

bool IsOf(std::uint32_t process, uid_t user) {
  struct stat status {};
  return stat(absl::StrCat("/proc/", process).c_str(), &status) == 0 && status.st_uid == user;
}

}  // namespace

Terminal FindTerminal() {
  const char* const kind = std::getenv("TERM");
  const bool is_dumb = kind == nullptr || std::string_view(kind) == "dumb";
  Terminal terminal;
  terminal.is_output = isatty(STDOUT_FILENO) == 1;
  terminal.shows_output = terminal.is_output && !is_dumb && std::getenv("NO_COLOR") == nullptr;
  terminal.shows_errors = isatty(STDERR_FILENO) == 1;
  winsize size{};
  if (terminal.is_output && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
    terminal.columns = size.ws_col;
  return terminal;
}

// Such a program takes each key at once, not line by line.
bool IsTerminalTaken() {
  termios settings{};
  return tcgetattr(STDERR_FILENO, &settings) == 0 && (settings.c_lflag & ICANON) == 0;
}

std::vector<std::string> ProgramArguments(int argc, char** argv) {
  return argc < 1 ? std::vector<std::string>() : std::vector<std::string>(argv + 1, argv + argc);
}

void UseBinaryStreams() {}

std::string ReadFileOf(std::uint32_t process, const std::string& path, std::uint64_t offset,
                       std::size_t max_bytes) {
  const Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat status {};
  if (!file.is_open() || fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode) ||
      (status.st_uid != 0 && status.st_uid != geteuid() && !IsOf(process, status.st_uid)))
    return {};
  const auto size = static_cast<std::uint64_t>(status.st_size);
  if (size <= offset) return {};
  std::string text(static_cast<std::size_t>(std::min<std::uint64_t>(size - offset, max_bytes)),
                   '\0');
  const ssize_t count = pread(file.get(), text.data(), text.size(), static_cast<off_t>(offset));
  text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
  return text;
}

}  // namespace strobe::internal
