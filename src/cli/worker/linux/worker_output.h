// Where the command, as a worker, delivers profiles to: the variable STROBE_WORKER_OUTPUT says it.
#pragma once

#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "strobe/worker/program/local_worker.h"

namespace strobe::internal {

// Serves with the outputs that the variable names: "files" (the default), or a server. The exporter
// of that server reads its own variables. InvalidArgument for another name.
absl::StatusOr<Serve> ServeWithAskedOutput();

// Serves with an exporter over HTTP; empty if there is none of that name.
Serve ServeWithHttpOutput(std::string_view name);
// Their names behind "files", for a message.
std::string HttpOutputs();

}  // namespace strobe::internal
