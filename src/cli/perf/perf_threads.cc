#include "perf_threads.h"

#include <fstream>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "perf_fields.h"
#include "proc_files.h"
#include "strobe/core/label_set.h"
#include "strobe/core/thread_info.h"

namespace strobe::internal {
namespace {

// Of a record's `misc`, of kFork: the child says itself what it has mapped.
constexpr std::uint16_t kIsMadeUp = 1 << 13;

constexpr std::uint32_t kEnded = ~std::uint32_t{0};  // the id of what is on no list any more

// That one is -1.
std::int64_t Number(std::uint32_t id) { return static_cast<std::int32_t>(id); }

}  // namespace

void PerfThreads::Take(const PerfRecord& record) {
  switch (record.type) {
    case PerfRecordType::kComm: return TakeName(record);
    case PerfRecordType::kFork: return TakeFork(record);
    case PerfRecordType::kExit: return TakeExit(record);
    default: return;
  }
}

void PerfThreads::Begin(Thread& thread, std::uint32_t process) {
  thread.process = process;
  if (!std::exchange(thread.is_alive, true)) ++processes_[process].alive;
}

// What is known of a process ends with its last thread: another one may get its id.
void PerfThreads::End(Thread& thread) {
  if (!std::exchange(thread.is_alive, false)) return;
  Process& owner = processes_[thread.process];
  if (owner.alive == 0 || --owner.alive > 0) return;
  owner.is_left_out = false;
  table_.Exit(thread.process);
}

// The thread that executes a program gets the id of its process. The others have ended.
void PerfThreads::EndOthers(std::uint32_t process, std::uint32_t than) {
  if (processes_[process].alive < 2) return;
  for (auto& [id, thread] : threads_) {
    if (thread.process == process && id != than) End(thread);
  }
}

PerfThreads::Thread& PerfThreads::ThreadOf(std::uint32_t process, std::uint32_t thread) {
  const auto [place, is_new] = threads_.try_emplace(thread);
  if (is_new) {
    Begin(place->second, process);
    builder_.Take(kThreadBytes);
  }
  return place->second;
}

void PerfThreads::UseMachine() {
  is_machine_ = true;
  processes_[0].name = kOutsideName;
}

void PerfThreads::Attach(std::uint32_t process) {
  const std::string threads = absl::StrCat("/proc/", process, "/task");
  for (const std::uint32_t id : IdsIn(threads)) {
    std::string name;
    std::ifstream file(absl::StrCat(threads, "/", id, "/comm"));
    if (std::getline(file, name)) SetName(process, id, name, false);
  }
}

void PerfThreads::SetName(std::uint32_t process, std::uint32_t id, std::string_view name,
                          bool is_exec) {
  Thread& thread = ThreadOf(process, id);
  Begin(thread, process);
  thread.name = SanitizedThreadName(name);
  thread.labels = Thread::kNoLabels;
  if (process == id) table_.SetName(process, thread.name);
  Process& owner = processes_[process];
  if (!is_exec && (process != id || !owner.name.empty())) return;
  owner.name = thread.name;
  owner.is_looked_up = false;
}

void PerfThreads::TakeName(const PerfRecord& record) {
  PerfFields fields(record.body);
  const auto process = fields.Take<std::uint32_t>();
  const auto id = fields.Take<std::uint32_t>();
  const std::string_view name = fields.TakeText(fields.remaining());
  if (!fields.ok()) return;
  const bool is_exec = IsExec(record);
  if (is_exec) {
    table_.Exec(process);
    processes_[process].is_left_out = false;
    processes_[process].losses = losses_;
  }
  SetName(process, id, name, is_exec);
  if (is_exec) EndOthers(process, id);
}

void PerfThreads::TakeFork(const PerfRecord& record) {
  PerfFields fields(record.body);
  const auto process = fields.Take<std::uint32_t>();
  const auto parent = fields.Take<std::uint32_t>();
  const auto id = fields.Take<std::uint32_t>();
  const auto parent_id = fields.Take<std::uint32_t>();
  if (!fields.ok()) return;
  const std::string name = ThreadOf(parent, parent_id).name;
  Thread& thread = ThreadOf(process, id);
  Begin(thread, process);
  thread.name = name;
  thread.labels = Thread::kNoLabels;
  if ((record.misc & kIsMadeUp) != 0 || parent == process) return;
  table_.Fork(parent, process);
  const Process from = processes_[parent];
  Process& forked = processes_[process];
  forked.name = from.name;
  forked.container = from.container;
  forked.is_left_out = from.is_left_out;
  forked.is_looked_up = false;
  forked.losses = from.losses;
}

void PerfThreads::TakeExit(const PerfRecord& record) {
  PerfFields fields(record.body);
  fields.TakeBytes(2 * sizeof(std::uint32_t));  // the process, and its parent
  const auto found = threads_.find(fields.Take<std::uint32_t>());
  if (fields.ok() && found != threads_.end()) End(found->second);
}

bool PerfThreads::IsLeftOut(std::uint32_t process) const {
  const auto found = processes_.find(process);
  return found != processes_.end() && found->second.is_left_out;
}

bool PerfThreads::TakeDoubt(std::uint32_t process) {
  return losses_ != 0 && std::exchange(processes_[process].losses, losses_) != losses_;
}

bool PerfThreads::IsAlive(std::uint32_t thread) const {
  const auto found = threads_.find(thread);
  return thread != kEnded && (found == threads_.end() || found->second.is_alive);
}

// A process that has ended meanwhile is called what the records have called it.
const PerfThreads::Process& PerfThreads::LookedUp(std::uint32_t id) {
  Process& process = processes_[id];
  if (!uses_proc_ || std::exchange(process.is_looked_up, true)) return process;
  process.name = SanitizedText(WholeProcessName(id, process.name), LabelSet::kMaxTextBytes);
  if (!is_machine_) return process;
  if (std::optional<std::string> container = ContainerOf(id))
    process.container = *std::move(container);
  return process;
}

std::uint32_t PerfThreads::LabelsOf(std::uint32_t process, std::uint32_t id) {
  Thread& thread = ThreadOf(process, id);
  if (thread.labels == Thread::kNoLabels) {
    const Process& owner = LookedUp(thread.process);
    std::vector<Label> labels = {{std::string(kThreadIdLabel), Number(id)},
                                 {std::string(kProcessLabel), Number(thread.process)}};
    const auto add_text = [&](std::string_view key, const std::string& text) {
      if (!text.empty()) labels.push_back({std::string(key), text});
    };
    add_text(kThreadNameLabel, thread.name);
    add_text(kProcessNameLabel,
             is_machine_ && owner.name.empty() ? std::string(kEndedName) : owner.name);
    add_text(kContainerLabel, owner.container);
    thread.labels = builder_.Labels(LabelSet(std::move(labels)));
  }
  return thread.labels;
}

void PerfThreads::Finish() {
  if (!is_machine_ && !keeps_processes_) RemoveOnlyProcess(builder_.profile().label_sets);
}

void PerfThreads::RemoveOnlyProcess(std::vector<LabelSet>& sets) {
  const LabelSet* first = nullptr;
  for (const LabelSet& set : sets) {
    if (set.Number(kProcessLabel) == 0) continue;  // of no process
    if (first == nullptr) first = &set;
    if (set.Number(kProcessLabel) != first->Number(kProcessLabel) ||
        set.Text(kProcessNameLabel) != first->Text(kProcessNameLabel))
      return;
  }
  for (LabelSet& set : sets) {
    std::vector<Label> labels(set.labels().begin(), set.labels().end());
    std::erase_if(labels, [](const Label& label) {
      return label.key == kProcessLabel || label.key == kProcessNameLabel;
    });
    set = LabelSet(std::move(labels));
  }
}

void PerfThreads::BeginPeriod() {
  absl::erase_if(threads_, [](const auto& entry) { return !entry.second.is_alive; });
  absl::erase_if(processes_,
                 [](const auto& entry) { return entry.second.alive == 0 && entry.first != 0; });
  for (auto& [id, thread] : threads_) {
    thread.labels = Thread::kNoLabels;
    builder_.Take(kThreadBytes);
  }
}

}  // namespace strobe::internal
