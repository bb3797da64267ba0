// strobe: looks at profiles, and writes them in other formats. See README.md.
#include <cstdio>
#include <exception>
#include <new>

#include "command_line.h"
#include "terminal.h"
#include "worker.h"

int main(int argc, char** argv) {
  strobe::internal::ServeIfAsked(argc, argv);
  strobe::internal::UseBinaryStreams();
  try {
    strobe::internal::CommandLine line;
    return line.Run(strobe::internal::ProgramArguments(argc, argv));
  } catch (const std::bad_alloc&) {
    std::fputs("strobe: there is not enough memory\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "strobe: %s\n", error.what());
  }
  return 1;
}
