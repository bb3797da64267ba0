// strobe symbolize: a profile with the names and lines of this machine's files.
#include "command_line.h"
#include "ui/progress.h"

namespace strobe::internal {
namespace {

Text Symbolize(CommandLine& line) {
  const Request& request = line.request();
  const absl::StatusOr<std::string> format = FormatOf(request);
  if (!format.ok()) return format.status();
  absl::StatusOr<FilteredProfile> subject = line.LoadAll(line.request().files);
  if (!subject.ok()) return subject.status();
  Progress progress(line.terminal());
  progress.Print("reading symbols");
  const absl::Status status =
      SymbolizeProfile(subject->loaded, SearchIn(request.debug_directories));
  if (!status.ok()) return status;
  return EncodeWhatIsLeft(*format, subject->loaded, request);
}

}  // namespace

void AddSymbolize(CommandLine& line) {
  CLI::App* const symbolize =
      line.AddReader("symbolize", "Finds names and lines in the files of this machine",
                     [&line] { return Symbolize(line); });
  line.AddFiles(*symbolize, 0);
  line.AddOutput(*symbolize);
  line.AddDebugDirectories(*symbolize);
  symbolize->footer(
      "Files are found by their build ids: at the paths of the profile, below the\n"
      "directories, in /usr/lib/debug and in debuginfod's cache; then on the servers\n"
      "that DEBUGINFOD_URLS names.");
}

}  // namespace strobe::internal
