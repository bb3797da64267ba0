// The arguments that name what runs already: of `strobe record` and `strobe top`.
#pragma once

#include <CLI/CLI.hpp>

#include <string>

#include "record.h"

namespace strobe::internal {

// -p, --tid, -a, --cgroup and --no-children, in the help's group of that name.
void DeclareTargets(CLI::App& app, RecordOptions& options, const std::string& group = "Options");

// What is named, by the option's name; empty if nothing is.
std::string RunningTarget(const CLI::App& app);

// Returns why it is not clear what is meant, or nothing. A command is one of the kinds of targets.
std::string JudgeTargets(const CLI::App& app, const RecordOptions& options);

}  // namespace strobe::internal
