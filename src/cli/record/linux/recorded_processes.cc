#include "recorded_processes.h"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "perf/proc_files.h"
#include "strobe/platform/linux/descriptor.h"
#include "strobe/worker/program/worker_process.h"

namespace strobe::internal {
namespace {

using Path = std::filesystem::path;

// Texts with a NUL behind each, as /proc has them.
std::vector<std::string> ReadTexts(const Path& path) {
  std::vector<std::string> texts;
  std::ifstream file(path, std::ios::binary);
  for (std::string text; std::getline(file, text, '\0');) texts.push_back(text);
  return texts;
}

bool IsWorker(const Path& process) {
  const std::vector<std::string> arguments = ReadTexts(process / "cmdline");
  return arguments.size() == 2 && arguments[1] == kWorkerArgument;
}

bool HasVariable(const Path& process, const std::string& variable) {
  const std::vector<std::string> variables = ReadTexts(process / "environ");
  return std::ranges::find(variables, variable) != variables.end();
}

Path FolderOf(std::uint64_t process) { return absl::StrCat("/proc/", process); }

}  // namespace

void RecordedProcesses::AwaitWorkers(std::chrono::milliseconds longest) const {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point end = Clock::now() + longest;
  std::vector<Descriptor> workers;  // each is readable once its worker has ended
  for (const std::uint32_t id : IdsIn("/proc")) {
    if (!IsWorker(FolderOf(id)) || !HasVariable(FolderOf(id), variable_)) continue;
    Descriptor worker(static_cast<int>(syscall(SYS_pidfd_open, id, 0)));
    if (worker.is_open()) workers.push_back(std::move(worker));
  }
  for (const Descriptor& worker : workers) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    pollfd ended{.fd = worker.get(), .events = POLLIN, .revents = 0};
    poll(&ended, 1, static_cast<int>(std::max<std::int64_t>(left.count(), 0)));
  }
}

std::vector<std::uint64_t> RecordedProcesses::Programs() const {
  std::vector<std::uint64_t> programs;
  for (const std::uint32_t id : IdsIn("/proc")) {
    if (!IsWorker(FolderOf(id)) && HasVariable(FolderOf(id), variable_)) programs.push_back(id);
  }
  return programs;
}

bool RecordedProcesses::IsOne(std::uint64_t process) const {
  return HasVariable(FolderOf(process), variable_);
}

std::string RecordedProcesses::RunningChildren() const {
  const auto own_id = static_cast<std::uint32_t>(getpid());
  std::string names;
  std::size_t count = 0;
  for (const std::uint32_t id : IdsIn("/proc")) {
    if (StatusNumber(id, "PPid") != own_id || IsWorker(FolderOf(id))) continue;
    if (++count > kMaxNamedChildren) continue;
    absl::StrAppend(&names, names.empty() ? "" : ", ", StatusValue(id, "Name"), " (", id, ")");
  }
  if (count > kMaxNamedChildren) absl::StrAppend(&names, ", and ", count - kMaxNamedChildren);
  return names;
}

void SayWhatRuns(RecordingOutput& output, const std::string& children) {
  if (children.empty()) return;
  output.Say(absl::StrCat(
      "the command has ended, and the recording goes on with what it has started: ", children,
      "; Ctrl-C ends it, --until-parent does not wait"));
}

}  // namespace strobe::internal
