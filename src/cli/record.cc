#include "record.h"

#include <CLI/CLI.hpp>

namespace strobe::internal {

void AddRecordOptions(CLI::App& command, RecordRequest& request) {
  command.add_option("-o,--output", request.output,
                     "The file to write, whose name decides the format, or a directory that gets a "
                     "file for each process. Default: PROGRAM.PID.0.pb.gz");
  command
      .add_option("-F,--frequency", request.cpu_frequency_hz,
                  "Samples per second of CPU time of a thread")
      ->capture_default_str()
      ->check(CLI::Range(0.0, 10000.0));
  command
      .add_option("--wall", request.wall_frequency_hz,
                  "Samples per second of each thread, running or waiting")
      ->check(CLI::Range(0.0, 1000.0));
  command.add_flag("--alloc", request.allocations, "Sample allocations and the live heap, too");
  command.add_flag("!--no-top", request.shows_top, "Print no table at the end");
  command.prefix_command();
  command.final_callback([&command, &request] {
    request.command = command.remaining();
    if (!request.command.empty() && request.command[0] == "--")
      request.command.erase(request.command.begin());
    if (request.command.empty()) throw CLI::RequiredError("a program to run");
  });
  command.footer(
      "  strobe record ./program --its arguments\n"
      "  strobe record -o one.html -F 1000 -- ./program\n\n"
      "The program is not changed: a library is preloaded, which profiles its threads, and those\n"
      "of the programs that it starts. The exit status is that of the program.");
}

}  // namespace strobe::internal
