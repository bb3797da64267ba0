#include "record.h"

#include <CLI/CLI.hpp>

#include <algorithm>

namespace strobe::internal {

void CutCommand(std::vector<std::string>& arguments, RecordRequest& request) {
  if (arguments.empty() || arguments[0] != "record") return;
  const auto mark = std::ranges::find(arguments, "--");
  if (mark == arguments.end()) return;
  request.has_mark = true;
  request.command.assign(mark + 1, arguments.end());
  arguments.erase(mark, arguments.end());
}

void AddRecordOptions(CLI::App& command, RecordRequest& request) {
  command.add_option("-o,--output", request.output,
                     "The file to write, whose name decides the format, or a directory that gets a "
                     "file for each process. Default: PROGRAM.PID.0.pb.gz");
  command
      .add_option("-F,--frequency", request.cpu_frequency_hz,
                  "Samples per second of CPU time of a thread. Default: 100")
      ->check(CLI::Range(0.0, 10000.0));
  command
      .add_option("--wall", request.wall_frequency_hz,
                  "Samples per second of each thread, running or waiting")
      ->check(CLI::Range(0.0, 1000.0));
  command.add_flag("--alloc", request.allocations, "Sample allocations and the live heap, too");
  command.add_flag("!--no-top", request.shows_top, "Print no table at the end");
  command.prefix_command();
  command.final_callback([&command, &request] {
    std::vector<std::string> before = command.remaining();
    // In `strobe record ls -- file`, the mark is one of ls.
    if (!before.empty() && request.has_mark) before.emplace_back("--");
    request.command.insert(request.command.begin(), before.begin(), before.end());
    if (request.command.empty()) throw CLI::RequiredError("a program to run");
  });
  command.footer(
      "  strobe record ./program --its arguments\n"
      "  strobe record -o one.html -F 1000 -- ./program\n\n"
      "The program is not changed: a library is preloaded, which profiles its threads, and those\n"
      "of the programs that it starts. The exit status is that of the program.");
}

}  // namespace strobe::internal
