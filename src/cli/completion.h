// Completion scripts for shells, made of the command's own description.
#pragma once

#include <string>

#include "absl/status/statusor.h"

namespace CLI {
class App;
}

namespace strobe::internal {

// `shell` is bash, zsh or fish.
absl::StatusOr<std::string> CompletionScript(const std::string& shell, const CLI::App& app);

}  // namespace strobe::internal
