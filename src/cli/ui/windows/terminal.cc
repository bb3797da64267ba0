#include "ui/terminal.h"

#include <fcntl.h>
#include <io.h>
#include <windows.h>
// After <windows.h>.
#include <shellapi.h>

#include <cstdio>
#include <cstdlib>

#include "../../../platform/windows/utf8.h"

namespace strobe::internal {

Terminal FindTerminal() {
  Terminal terminal;
  const HANDLE output = GetStdHandle(STD_OUTPUT_HANDLE);
  DWORD mode = 0;
  CONSOLE_SCREEN_BUFFER_INFO info{};
  terminal.is_output = GetConsoleMode(output, &mode) != 0;
  if (terminal.is_output) {
    SetConsoleOutputCP(CP_UTF8);
    terminal.shows_output =
        SetConsoleMode(output, mode | ENABLE_VIRTUAL_TERMINAL_PROCESSING) != 0 &&
        std::getenv("NO_COLOR") == nullptr;
    if (GetConsoleScreenBufferInfo(output, &info) != 0)
      terminal.columns = info.srWindow.Right - info.srWindow.Left + 1;
  }
  terminal.shows_errors = GetConsoleMode(GetStdHandle(STD_ERROR_HANDLE), &mode) != 0;
  return terminal;
}

bool IsTerminalTaken() { return false; }

std::vector<std::string> ProgramArguments(int, char**) {
  std::vector<std::string> arguments;
  int count = 0;
  wchar_t** const wide = CommandLineToArgvW(GetCommandLineW(), &count);
  for (int i = 1; wide != nullptr && i < count; ++i) arguments.push_back(Utf8FromWide(wide[i]));
  LocalFree(wide);
  return arguments;
}

void UseBinaryStreams() {
  _setmode(_fileno(stdin), _O_BINARY);
  _setmode(_fileno(stdout), _O_BINARY);
}

// No compiler of this system writes files for perf.
std::unique_ptr<ByteSource> OpenFileOf(std::uint32_t /*process*/, const std::string& /*path*/) {
  return nullptr;
}

}  // namespace strobe::internal
