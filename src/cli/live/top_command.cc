// strobe top: a table of profiles, or of what runs.
#include <memory>
#include <string>

#include "commands/command_line.h"
#include "live.h"
#include "record/target_arguments.h"

namespace strobe::internal {
namespace {

constexpr const char* kOfLive = "Live, of what runs";
// Options of files that a live table does not have.
constexpr const char* kOfFiles[] = {"--from", "--to", "--max-memory", "--unit"};
constexpr double kLeastPeriodS = 0.1;
constexpr double kMostPeriodS = 86400;

void DeclareLive(CLI::App& app, RecordOptions& options) {
  DeclareTargets(app, options, kOfLive);
  app.add_option("-F,--frequency,--hz", options.hz,
                 "Samples per second of CPU time of a thread. Default: 99")
      ->check(CLI::Range(0.0, 20000.0))
      ->group(kOfLive);
  app.add_option("--every", options.every_s, "Seconds of each table. Default: 1")
      ->check(CLI::Range(kLeastPeriodS, kMostPeriodS))
      ->group(kOfLive);
  app.add_option("--duration", options.duration_s, "Stop after this many seconds")
      ->check(CLI::Range(0.001, 1e8))
      ->group(kOfLive);
}

// Returns why the arguments do not go together, or nothing.
std::string Judge(const CLI::App& app, const RecordOptions& options, bool has_files) {
  const bool is_live = !RunningTarget(app).empty();
  if (!is_live && !has_files) {
    return "top: expected profiles, processes by -p, or the whole machine by -a; see strobe top "
           "--help";
  }
  if (is_live && has_files)
    return "top: a profile, or what " + RunningTarget(app) + " names: leave out one of them";
  for (const CLI::Option* const option : app.get_options()) {
    const bool is_given = option->count() > 0;
    if (!is_live && is_given && option->get_group() == kOfLive)
      return "top: " + option->get_name() + " is of what runs: see -p and -a";
  }
  for (const char* const name : kOfFiles) {
    if (is_live && app.count(name) > 0)
      return std::string("top: ") + name + " is of profiles, and not of what runs";
  }
  return JudgeTargets(app, options);
}

Text Top(CommandLine& line, const CLI::App& app, const RecordOptions& options) {
  if (const std::string refusal = Judge(app, options, !line.request().files.empty());
      !refusal.empty()) {
    SayError(refusal);
    line.EndWith(kWrongUse);
    return std::string();
  }
  if (!RunningTarget(app).empty()) {
    line.EndWith(RunLive(options, line.request(), line.terminal()));
    return std::string();
  }
  const absl::StatusOr<FilteredProfile> subject = line.LoadAll(line.request().files);
  if (!subject.ok()) return subject.status();
  return TopCommand(*subject, line.request(), line.printer());
}

}  // namespace

void AddTop(CommandLine& line) {
  const auto options = std::make_shared<RecordOptions>();
  CLI::App* const top = line.AddReader(
      "top", "Functions by their cost, of profiles or of what runs",
      [&line, options] { return Top(line, *line.app().get_subcommand("top"), *options); });
  line.AddRows(*top);
  line.AddFiles(*top, 0);
  top->get_option("FILE")->required(false);
  top->add_flag("--total", line.request().by_total, "Sort by the total, with what was called");
  DeclareLive(*top, *options);
  top->footer(
      "  strobe top one.pb.gz\n"
      "  strobe top -p 1234                    a table that is drawn again each second; q ends it\n"
      "  strobe top -a --duration 10 --json    a line of JSON a second\n\n"
      "self is the cost of a function itself, total that with what it called. A share is\n"
      "estimated from samples: \"31.2 % \u00B1 1.1\" has a standard error of 1.1 %.\n"
      "Live on a terminal: p pauses, s sorts by the other column, t shows all since the begin, /\n"
      "filters by a regular expression, Esc shows all again, h lists the keys. Elsewhere there is\n"
      "one table after another.");
}

}  // namespace strobe::internal
