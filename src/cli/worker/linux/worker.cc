#include "worker/worker.h"

#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>

#include "commands/command_line.h"
#include "strobe/worker/program/local_worker.h"
#include "strobe/worker/serve/worker_listener.h"
#include "worker_output.h"

namespace strobe::internal {
namespace {

// Until a signal ends it. Prints how programs find it, and at the end what it has served.
absl::Status Listen(const std::string& path) {
  const absl::StatusOr<Serve> serve = ServeWithAskedOutput();
  if (!serve.ok()) return serve.status();
  const auto announce = [](const std::string& where) {
    std::printf("%s=%s\n", kWorkerSocketVariable, where.c_str());
    std::fflush(stdout);
  };
  const absl::StatusOr<ServeEndCounts> counts = ListenWith(
      path, announce, [&serve](const WorkerSocket& socket) { return (*serve)(socket, nullptr); });
  if (!counts.ok()) return counts.status();
  std::fprintf(stderr, "strobe: %s\n", TextOf(*counts).c_str());
  return absl::OkStatus();
}

}  // namespace

void ServeIfAsked(int argc, char** argv) {
  RunWorkerIfAsked(argc, argv, [](const WorkerSocket& socket, const SharedArea* own_area) {
    const absl::StatusOr<Serve> serve = ServeWithAskedOutput();
    if (serve.ok()) return (*serve)(socket, own_area);
    std::fprintf(stderr, "strobe: %s\n", std::string(serve.status().message()).c_str());
    return ServeEnd::kFailed;
  });
}

void AddWorker(CommandLine& line) {
  const auto path = std::make_shared<std::string>();
  CLI::App* const worker =
      line.AddText("worker", "Samples, names and exports for other processes", [path]() -> Text {
        if (absl::Status status = Listen(*path); !status.ok()) return status;
        return std::string();
      });
  worker->add_option("--listen", *path, "Serve all programs of the user that find this socket")
      ->expected(0, 1)
      ->required();
  worker->footer(
      "Prints STROBE_WORKER_SOCKET=PATH: programs with a worker (STROBE_WORKER=1) that have\n"
      "this in their environment join. SIGTERM or Ctrl-C: exports what is left, and ends. The\n"
      "path's directory is the user's own, with mode 0700; by default $XDG_RUNTIME_DIR/strobe\n"
      "or /tmp/strobe-UID.");
}

}  // namespace strobe::internal
