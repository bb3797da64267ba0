#include "../terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>
#include <string_view>

namespace strobe::internal {

Terminal FindTerminal() {
  const char* const kind = std::getenv("TERM");
  const bool is_dumb = kind == nullptr || std::string_view(kind) == "dumb";
  Terminal terminal;
  terminal.shows_output =
      isatty(STDOUT_FILENO) == 1 && !is_dumb && std::getenv("NO_COLOR") == nullptr;
  terminal.shows_errors = isatty(STDERR_FILENO) == 1;
  winsize size{};
  if (isatty(STDOUT_FILENO) == 1 && ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0)
    terminal.columns = size.ws_col;
  return terminal;
}

std::vector<std::string> ProgramArguments(int argc, char** argv) {
  return argc < 1 ? std::vector<std::string>() : std::vector<std::string>(argv + 1, argv + argc);
}

void UseBinaryStreams() {}

}  // namespace strobe::internal
