#include "recorded_workers.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <string_view>
#include <system_error>
#include <vector>

#include "absl/strings/numbers.h"
#include "strobe/platform/linux/descriptor.h"
#include "strobe/worker/program/worker_process.h"

namespace strobe::internal {
namespace {

// Texts with a NUL behind each, as /proc has them.
std::vector<std::string> ReadTexts(const std::filesystem::path& path) {
  std::vector<std::string> texts;
  std::ifstream file(path, std::ios::binary);
  for (std::string text; std::getline(file, text, '\0');) texts.push_back(text);
  return texts;
}

bool IsWorker(const std::filesystem::path& process, const std::string& variable) {
  const std::vector<std::string> arguments = ReadTexts(process / "cmdline");
  if (arguments.size() != 2 || arguments[1] != kWorkerArgument) return false;
  const std::vector<std::string> variables = ReadTexts(process / "environ");
  return std::ranges::find(variables, variable) != variables.end();
}

// Descriptors of the workers; each is readable once its worker has ended.
std::vector<Descriptor> FindWorkers(const std::string& variable) {
  std::vector<Descriptor> workers;
  std::error_code error;
  for (std::filesystem::directory_iterator entry("/proc", error), end; !error && entry != end;
       entry.increment(error)) {
    int id = 0;
    if (!absl::SimpleAtoi(entry->path().filename().string(), &id)) continue;
    if (!IsWorker(entry->path(), variable)) continue;
    Descriptor worker(static_cast<int>(syscall(SYS_pidfd_open, id, 0)));
    if (worker.is_open()) workers.push_back(std::move(worker));
  }
  return workers;
}

}  // namespace

void AwaitWorkers(const std::string& variable, std::chrono::milliseconds longest) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + longest;
  for (const Descriptor& worker : FindWorkers(variable)) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    pollfd ended{.fd = worker.get(), .events = POLLIN, .revents = 0};
    poll(&ended, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
  }
}

}  // namespace strobe::internal
