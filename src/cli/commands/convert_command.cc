// strobe convert, merge and html: the sum of profiles, in another format.
#include <utility>

#include "command_line.h"

namespace strobe::internal {

namespace {

Text Convert(CommandLine& line) {
  const absl::StatusOr<std::string> format = FormatOf(line.request());
  if (!format.ok()) return format.status();
  const absl::StatusOr<FilteredProfile> subject = line.LoadAll(line.request().files);
  if (!subject.ok()) return subject.status();
  return EncodeWhatIsLeft(*format, subject->loaded, line.request());
}

Text Html(CommandLine& line) {
  Request& request = line.request();
  request.format = "html";
  if (request.base.empty()) return Convert(line);
  const absl::StatusOr<FilteredProfile> base = line.LoadSubject(request.base);
  if (!base.ok()) return base.status();
  const absl::StatusOr<FilteredProfile> subject = line.LoadAll(line.request().files);
  if (!subject.ok()) return subject.status();
  return ComparisonPage(base->loaded, subject->loaded);
}

}  // namespace

void AddConverters(CommandLine& line) {
  for (const auto& [name, description] :
       {std::pair("convert", "Writes a profile in another format"),
        std::pair("merge", "Adds profiles up, and writes the sum")}) {
    CLI::App* const command = line.AddReader(name, description, [&line] { return Convert(line); });
    line.AddFiles(*command, 0);
    line.AddOutput(*command);
    command->footer("Formats: " + FormatNames() + ".");
  }
  CLI::App* const html = line.AddReader("html", "A page for a browser: flame graph, tables, times",
                                        [&line] { return Html(line); });
  line.AddFiles(*html, 0);
  html->add_option("--base", line.request().base, "A profile to compare with");
  html->add_option("-o,--output", line.request().output,
                   "The file to write. Default: standard output");
}

}  // namespace strobe::internal
