#include "target_arguments.h"

#include "absl/strings/str_cat.h"

namespace strobe::internal {

void DeclareTargets(CLI::App& app, RecordOptions& options, const std::string& group) {
  app.add_option("-p,--process", options.processes,
                 "Processes that run already, until they end, with what they start")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(group);
  app.add_option("--tid", options.threads,
                 "Threads of processes that run already, and nothing that they start")
      ->delimiter(',')
      ->allow_extra_args(false)
      ->group(group);
  app.add_flag("-a,--all", options.is_machine, "All that runs on this machine")->group(group);
  app.add_option_function<std::string>(
         "--cgroup",
         [&options](const std::string& name) {
           options.cgroup = name;
           options.is_machine = true;
         },
         "All that runs in this control group, a directory below /sys/fs/cgroup")
      ->allow_extra_args(false)
      ->group(group);
  app.add_flag("!--no-children", options.has_children,
               "With -p: leave out the children that the processes have by now")
      ->group(group);
}

std::string RunningTarget(const CLI::App& app) {
  for (const char* const name : {"--process", "--tid", "--cgroup", "--all"}) {
    if (app.count(name) > 0) return name;
  }
  return {};
}

std::string JudgeTargets(const CLI::App& app, const RecordOptions& options) {
  const std::string& name = app.get_name();
  const int kinds = static_cast<int>(app.count("--process") > 0) +
                    static_cast<int>(app.count("--tid") > 0) + static_cast<int>(options.is_machine);
  if (kinds > 1 || (!options.command.empty() && kinds > 0 && !options.is_machine)) {
    return absl::StrCat(name, name == "record" ? ": a command, -p," : ": -p,",
                        " --tid and -a are each a recording: name one of them");
  }
  if (app.count("--cgroup") > 0 && options.cgroup.empty())
    return name + ": --cgroup needs the name of a group";
  if (app.count("--no-children") > 0 && app.count("--process") == 0)
    return name + ": --no-children is of processes that run already: see -p";
  return {};
}

}  // namespace strobe::internal
