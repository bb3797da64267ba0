#include "run_command.h"

#include <cstdio>
#include <exception>
#include <new>

#include "commands/command_line.h"
#include "ui/terminal.h"
#include "worker/worker.h"

namespace strobe::internal {

int RunCommand(int argc, char** argv) {
  ServeIfAsked(argc, argv);
  UseBinaryStreams();
  try {
    CommandLine line;
    return line.Run(ProgramArguments(argc, argv));
  } catch (const std::bad_alloc&) {
    std::fputs("strobe: there is not enough memory\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "strobe: %s\n", error.what());
  }
  return 1;
}

}  // namespace strobe::internal
